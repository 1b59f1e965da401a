// sluice: one name for all programs. "sluice train FLAGS" becomes sluice_train FLAGS, and
// "sluice run -n 4 train FLAGS" becomes mpirun, which starts sluice_train in four ranks.
//
// The program lies beside this one, in ../libexec/sluice, or where Bazel builds it. It replaces
// this process, so flags, exit codes, signals and mpirun work as without sluice. It calls itself
// "sluice train" then.
//
// PrintHelp() says the exit codes.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/base/nearest.h"
#include "common/base/version.h"

namespace sluice {
namespace {

constexpr int kBadUsage = 2;
constexpr int kNoProgram = 127;  // as of a shell

struct Command {
  const char* name;
  const char* folder;  // of the checkout
  const char* program;
  const char* help;
};

constexpr std::array<Command, 6> kCommands = {{
    {"serve", "server", "sluice_server", "serves parameters"},
    {"train", "worker", "sluice_train", "trains a model, with a server or without"},
    {"evaluate", "tools/evaluate", "sluice_evaluate", "measures loss and accuracy"},
    {"predict", "worker/torch/examples", "predict", "says what a checkpoint sees in an image"},
    {"ctl", "tools/ctl", "sluicectl",
     "looks into a running server, changes it, and works with checkpoints"},
    {"doctor", "tools/doctor", "sluice_doctor", "checks this machine, and the way to a server"},
}};

constexpr char kRun[] = "run";

constexpr char kHelpOfRun[] =
    R"(Starts a job on this machine by mpirun, whatever mpirun thinks of slots, cores and root.
Usage: sluice run -n N PROGRAM [ARGUMENTS…]

Positionals:
  PROGRAM                     a command of sluice, such as train, or what mpirun would run

Options:
  -h,--help                   print this help message and exit
  -n,-np N                    how many ranks to start, as of mpirun: rank 0 serves, so that N - 1
                              ranks work (with --servers=S of the program: N - S)

Examples:
  sluice run -n 4 train --epochs=1
  sluice run -n 4 python3 train.py

It becomes mpirun --oversubscribe --bind-to none -n N PROGRAM ARGUMENTS…, so there may be more ranks
than cores. If the user is root, it sets OMPI_ALLOW_RUN_AS_ROOT=1 and
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1. For several machines, for other flags of mpirun, and for serve with
a function of Python, call mpirun.
)";

void PrintHelp(std::ostream& out) {
  out << "Runs the programs of Sluice.\nUsage: sluice COMMAND [FLAGS…]\n\nSubcommands:\n";
  for (const Command& command : kCommands) {
    out << absl::StrFormat("  %-28s%s (%s)\n", command.name, command.help, command.program);
  }
  out << absl::StrFormat("  %-28s%s\n", kRun, "starts a job on this machine: server and workers")
      << absl::StrFormat("  %-28s%s\n", "version", "prints the version")
      << absl::StrFormat("  %-28s%s\n", "help", "prints this, or with a command its flags")
      << "\nsluice COMMAND --help lists the flags of a command. sluice serve FILE.py:FUNCTION "
         "FLAGS…\n"
         "steps with the optimizer that the function of Python makes (python3-sluice).\n"
         "\nExit codes: those of the program; 2 the command line is wrong; 127 the program is not\n"
         "there.\n";
}

const Command* Find(absl::string_view name) {
  const auto* const found =
      std::find_if(kCommands.begin(), kCommands.end(),
                   [name](const Command& known) { return name == known.name; });
  return found == kCommands.end() ? nullptr : found;
}

int RefuseCommand(absl::string_view name) {
  std::vector<std::string> names = {kRun};
  for (const Command& command : kCommands) names.emplace_back(command.name);
  std::cerr << absl::StrCat("sluice: there is no command \"", Shown(name), "\"; the nearest is ",
                            NearestOf(name, names), "; sluice help lists all\n");
  return kBadUsage;
}

// Where a program may be, the likeliest place first.
std::vector<std::filesystem::path> PlacesOf(const Command& command) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return {self / command.program, self / "../libexec/sluice" / command.program,
          self / "../.." / command.folder / command.program};
}

// Empty, after the reason was printed, if there is no such program.
std::string PathOf(const Command& command) {
  for (const std::filesystem::path& place : PlacesOf(command)) {
    if (access(place.c_str(), X_OK) == 0) return place.lexically_normal();
  }
  std::cerr << absl::StrCat(
      "sluice: ", command.program,
      " is not there; install the package sluice, or build it: bazel build //", command.folder, ":",
      command.program, "\n");
  return "";
}

// Returns only if the program cannot run.
int Run(const Command& command, char** argv) {
  const std::string path = PathOf(command);
  if (path.empty()) return kNoProgram;
  std::string name = absl::StrCat("sluice ", command.name);  // see CalledAs()
  argv[0] = name.data();
  execv(path.c_str(), argv);
  std::cerr << absl::StrCat("sluice: ", path, ": ", strerror(errno), "\n");
  return kNoProgram;
}

// "train.py:make_optimizer", as python3 -m sluice.server takes it.
bool IsFunctionOfPython(absl::string_view word) { return absl::StrContains(word, ".py:"); }

// A server with an optimizer of the user's. `words` are those after "serve". Returns only if there
// is no Python.
int ServeWithPython(char** words) {
  std::vector<std::string> begin = {"python3", "-m", "sluice.server"};
  std::vector<char*> argv;
  for (std::string& word : begin) argv.push_back(word.data());
  for (; *words != nullptr; ++words) argv.push_back(*words);
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::cerr << absl::StrCat("sluice serve: python3: ", strerror(errno), "\n");
  return kNoProgram;
}

int RefuseRun(absl::string_view why) {
  std::cerr << absl::StrCat("sluice run: ", why, "; sluice run --help says more\n");
  return kBadUsage;
}

// Returns only if there is no mpirun. `words` are the program and its arguments, then null.
int StartRanks(uint32_t ranks, char** words) {
  std::string path;
  const Command* const command = Find(words[0]);
  if (command != nullptr) {
    path = PathOf(*command);
    if (path.empty()) return kNoProgram;
    words[0] = path.data();
  }
  std::string count = absl::StrCat(ranks);
  std::vector<std::string> launch = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n", count};
  std::vector<char*> argv;
  for (std::string& word : launch) argv.push_back(word.data());
  for (; *words != nullptr; ++words) argv.push_back(*words);
  argv.push_back(nullptr);
  if (geteuid() == 0) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }
  execvp(argv[0], argv.data());
  const std::string why = errno == ENOENT ? "there is no mpirun; install the package openmpi-bin"
                                          : absl::StrCat("mpirun: ", strerror(errno));
  std::cerr << absl::StrCat("sluice run: ", why, "\n");
  return kNoProgram;
}

// `words` are those after "run".
int RunJob(char** words) {
  uint32_t ranks = 0;
  for (; *words != nullptr && **words == '-'; ++words) {
    absl::string_view word = *words;
    if (word == "-h" || word == "--help" || word == "--help-all") {
      std::cout << kHelpOfRun;
      return 0;
    }
    if (word == "--") {
      ++words;
      break;
    }
    const bool is_count = absl::ConsumePrefix(&word, "-np") || absl::ConsumePrefix(&word, "-n");
    if (!is_count || absl::ascii_isalpha(word.empty() ? '\0' : word.front())) {
      word = *words;
      return RefuseRun(
          absl::StrCat(Shown(word), " before the program is not a flag of sluice run"));
    }
    if (word.empty() && words[1] != nullptr) word = *++words;
    absl::ConsumePrefix(&word, "=");
    if (!absl::SimpleAtoi(word, &ranks) || ranks == 0) {
      return RefuseRun(absl::StrCat("-n: expected a whole number from 1, found ", Shown(word)));
    }
  }
  if (ranks == 0) {
    return RefuseRun("expected -n N, the number of ranks, before the program, for example -n 4");
  }
  if (*words == nullptr || **words == '\0') {
    return RefuseRun("expected a program after -n N, for example train or python3 train.py");
  }
  return StartRanks(ranks, words);
}

// "sluice help train" is "sluice train --help".
int Help(int argc, char** argv) {
  if (argc < 3) {
    PrintHelp(std::cout);
    return 0;
  }
  if (argv[2] == absl::string_view(kRun)) {
    std::cout << kHelpOfRun;
    return 0;
  }
  const Command* const command = Find(argv[2]);
  if (command == nullptr) return RefuseCommand(argv[2]);
  std::string flag = "--help";
  std::array<char*, 3> words = {argv[0], flag.data(), nullptr};
  return Run(*command, words.data());
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    PrintHelp(std::cerr);
    return kBadUsage;
  }
  const absl::string_view name = argv[1];
  if (name == "help" || name == "--help" || name == "-h") return Help(argc, argv);
  if (name == "version" || name == "--version") {
    std::cout << VersionText("sluice", {}) << "\n";
    return 0;
  }
  if (name == kRun) return RunJob(argv + 2);
  if (name == "serve" && argc > 2 && IsFunctionOfPython(argv[2])) return ServeWithPython(argv + 2);
  const Command* const command = Find(name);
  return command == nullptr ? RefuseCommand(name) : Run(*command, argv + 1);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
