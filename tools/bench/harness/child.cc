#include "tools/bench/harness/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/launch/child_process.h"

namespace sluice::bench {
namespace {

using Actions = posix_spawn_file_actions_t;

// Returns 0 or an errno.
int Spawn(std::vector<std::string> words, const Actions& actions, pid_t* pid) {
  const std::vector<char*> argv = ExecWords(words);
  return posix_spawnp(pid, argv[0], &actions, nullptr, argv.data(), environ);
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

bool EndedWell(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

}  // namespace

absl::StatusOr<std::unique_ptr<Child>> Child::Start(const std::string& name,
                                                    std::vector<std::string> argv,
                                                    const Streams& streams) {
  Actions actions;
  posix_spawn_file_actions_init(&actions);
  if (streams.input >= 0) {
    posix_spawn_file_actions_adddup2(&actions, streams.input, STDIN_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  const int output = streams.output >= 0 ? streams.output : STDERR_FILENO;
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t pid = 0;
  const int error = Spawn(std::move(argv), actions, &pid);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", name));
  return std::unique_ptr<Child>(new Child(name, pid));
}

Child::~Child() {
  if (pid_ == 0) return;
  kill(pid_, SIGTERM);
  WaitFor(pid_);
}

absl::Status Child::Wait() {
  const int status = WaitFor(std::exchange(pid_, 0));
  if (EndedWell(status)) return absl::OkStatus();
  const std::string how = WIFSIGNALED(status) ? absl::StrCat("by signal ", WTERMSIG(status))
                                              : absl::StrCat("with ", WEXITSTATUS(status));
  return absl::AbortedError(absl::StrCat(name_, " ended ", how, ", expected 0"));
}

bool Succeeds(const std::vector<std::string>& argv) {
  Actions actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  pid_t pid = 0;
  const int error = Spawn(argv, actions, &pid);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 && EndedWell(WaitFor(pid));
}

}  // namespace sluice::bench
