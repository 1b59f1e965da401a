// A library for LD_PRELOAD that runs a program many times though it is loaded once, for programs
// whose libraries take a second to load: each line of its input is a command line, its words
// between tabs, and main() runs with them in a fork. A line "\4CODE" follows what the fork has
// printed; CODE is its exit code, or 128 and the signal that has ended it.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Main = int (*)(int, char**, char**);

Main real_main = nullptr;

[[noreturn]] void RunFork(const std::string& line, char** environment) {
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(STDOUT_FILENO, STDERR_FILENO);
  std::vector<std::string> words;
  std::istringstream all(line);
  for (std::string word; std::getline(all, word, '\t');) words.push_back(word);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  exit(real_main(static_cast<int>(words.size()), argv.data(), environment));
}

int RunEach(int, char**, char** environment) {
  for (std::string line; std::getline(std::cin, line);) {
    const pid_t child = fork();
    if (child == 0) RunFork(line, environment);
    int status = 0;
    waitpid(child, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    std::cout << "\n\4" << code << std::endl;
  }
  return 0;
}

}  // namespace

// Calls main() once all libraries are loaded.
extern "C" int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*loader_fini)(), void* stack) {
  real_main = main;
  const auto real =
      reinterpret_cast<decltype(&__libc_start_main)>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return real(RunEach, argc, argv, init, fini, loader_fini, stack);
}
