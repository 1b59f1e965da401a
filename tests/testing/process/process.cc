#include "tests/testing/process/process.h"

#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/launch/child_process.h"

namespace sluice {
namespace {

constexpr int kPipeBytes = 1 << 20;    // the most that a user may have
constexpr size_t kShownOutput = 4096;  // of a process whose wait failed: its last bytes

// A function of glibc's since 2.36 only.
void SignalPidfd(int pidfd, int signal) {
  syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0);
}

// What posix_spawn is told besides program, arguments and environment.
class SpawnTerms {
 public:
  // stdout and stderr go to `output`.
  explicit SpawnTerms(int output) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnTerms() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnTerms(const SpawnTerms&) = delete;
  SpawnTerms& operator=(const SpawnTerms&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// This process's environment with `extra` on top, as NAME=value.
std::vector<std::string> MergedEnvironment(const Process::Environment& extra) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (extra.count(text.substr(0, text.find('='))) == 0) merged.push_back(text);
  }
  for (const auto& [name, value] : extra) merged.push_back(absl::StrCat(name, "=", value));
  return merged;
}

// A compiled POSIX extended regular expression.
class LinePattern {
 public:
  explicit LinePattern(const std::string& regex)
      : error_(regcomp(&compiled_, regex.c_str(), REG_EXTENDED)) {}
  ~LinePattern() {
    if (valid()) regfree(&compiled_);
  }
  LinePattern(const LinePattern&) = delete;
  LinePattern& operator=(const LinePattern&) = delete;

  bool valid() const { return error_ == 0; }

  // What the first group matched, or `line` if the pattern has none; absent if it is not found
  // there.
  absl::optional<std::string> FindIn(const std::string& line) const {
    regmatch_t match[2];
    if (regexec(&compiled_, line.c_str(), 2, match, 0) != 0) return absl::nullopt;
    if (match[1].rm_so < 0) return line;
    return line.substr(match[1].rm_so, match[1].rm_eo - match[1].rm_so);
  }

 private:
  regex_t compiled_;
  const int error_;
};

// Takes one line off the front of `text`; if it `must_end`, only one with its line feed.
bool ConsumeLine(absl::string_view* text, bool must_end, std::string* line) {
  const size_t end = text->find('\n');
  if (text->empty() || (end == absl::string_view::npos && must_end)) return false;
  *line = std::string(text->substr(0, end));
  text->remove_prefix(end == absl::string_view::npos ? text->size() : end + 1);
  return true;
}

std::string WithOutput(absl::string_view problem, const std::string& output) {
  const size_t start = output.size() > kShownOutput ? output.size() - kShownOutput : 0;
  return absl::StrCat(problem, "; it wrote:\n", start > 0 ? "…" : "", output.substr(start));
}

// Whether `pid` runs and belongs to `session`. See proc(5) about /proc/PID/stat.
bool RunsInSession(pid_t pid, pid_t session) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text, '\0');
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  char state = 'X';
  pid_t parent = 0, group = 0, found = 0;
  fields >> state >> parent >> group >> found;
  return found == session && state != 'Z' && state != 'X';
}

// Pidfds of the running processes of `session`; the caller closes them.
std::vector<int> OpenSession(pid_t session) {
  std::vector<int> pidfds;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    if (!RunsInSession(pid, session)) continue;
    const int pidfd = OpenPidfd(pid);
    if (pidfd < 0) continue;
    if (RunsInSession(pid, session)) {  // still, so that the pidfd is its own
      pidfds.push_back(pidfd);
    } else {
      close(pidfd);
    }
  }
  return pidfds;
}

// Until nobody is left: a process may have started another while it was killed.
void KillSession(pid_t session) {
  std::vector<int> pidfds = OpenSession(session);
  while (!pidfds.empty()) {
    for (const int pidfd : pidfds) SignalPidfd(pidfd, SIGKILL);
    for (const int pidfd : pidfds) {
      pollfd ended = {pidfd, POLLIN, 0};
      while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
      }
      close(pidfd);
    }
    pidfds = OpenSession(session);
  }
}

}  // namespace

// A point of the steady clock.
class Process::Deadline {
 public:
  explicit Deadline(absl::Duration limit)
      : end_(std::chrono::steady_clock::now() +
             absl::ToChronoMilliseconds(std::min(limit, absl::Hours(24)))) {}

  int MillisecondsLeft() const {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

 private:
  const std::chrono::steady_clock::time_point end_;
};

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const std::vector<std::string>& argv,
                                                        const Environment& extra) {
  if (argv.empty()) return absl::InvalidArgumentError("argv is empty, expected a program");
  std::vector<std::string> words = argv;
  std::vector<std::string> environment = MergedEnvironment(extra);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  pid_t pid = 0;
  const SpawnTerms terms(ends[1]);
  const int error = posix_spawnp(&pid, words[0].c_str(), terms.actions(), terms.attributes(),
                                 ExecWords(words).data(), ExecWords(environment).data());
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", words[0]));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  // Nobody reads while the test waits for another process, and one that cannot write stands still.
  fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);
  const int pidfd = OpenPidfd(pid);
  if (pidfd < 0) {
    const absl::Status status = absl::ErrnoToStatus(errno, "pidfd_open");
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    close(ends[0]);
    return status;
  }
  return std::unique_ptr<Process>(new Process(pid, ends[0], pidfd));
}

Process::Process(pid_t pid, int pipe, int pidfd)
    : pid_(pid),
      pipe_(pipe),
      pidfd_(pidfd),
      pipe_capacity_(static_cast<size_t>(fcntl(pipe, F_GETPIPE_SZ))) {}

Process::~Process() {
  KillSession(pid_);
  waitid(P_PID, static_cast<id_t>(pid_), nullptr, WEXITED);
  close(pidfd_);
  close(pipe_);
}

void Process::Signal(int signal) { kill(pid_, signal); }

absl::StatusOr<int> Process::Wait(absl::Duration limit) {
  const Deadline deadline(limit);
  while (!ended_) {
    if (!Advance(deadline)) {
      return absl::DeadlineExceededError(WithOutput(
          absl::StrCat("process ", pid_, " did not end within ", absl::FormatDuration(limit)),
          output_));
    }
  }
  return ExitStatus();
}

absl::StatusOr<std::string> Process::WaitForOutput(const std::string& regex, absl::Duration limit) {
  const LinePattern pattern(regex);
  if (!pattern.valid()) return absl::InvalidArgumentError(absl::StrCat("bad regex: ", regex));
  const Deadline deadline(limit);
  size_t searched = 0;
  for (bool in_time = true;; in_time = Advance(deadline)) {
    absl::string_view rest = absl::string_view(output_).substr(searched);
    for (std::string line; ConsumeLine(&rest, !ended_, &line);) {
      absl::optional<std::string> found = pattern.FindIn(line);
      if (found.has_value()) return *std::move(found);
    }
    searched = output_.size() - rest.size();
    const std::string missing = absl::StrCat(" and wrote no line with \"", regex, "\"");
    if (ended_) {
      return absl::FailedPreconditionError(WithOutput(
          absl::StrCat("process ", pid_, " ended with ", ExitStatus(), missing), output_));
    }
    if (!in_time) {
      return absl::DeadlineExceededError(WithOutput(
          absl::StrCat("process ", pid_, " ran for ", absl::FormatDuration(limit), missing),
          output_));
    }
  }
}

// Blocks until the process has written or ended, and takes what it wrote. False once it is too late
// to call it again.
bool Process::Advance(const Deadline& deadline) {
  pollfd events[] = {{pipe_open_ ? pipe_ : -1, POLLIN, 0}, {pidfd_, POLLIN, 0}};
  if (poll(events, 2, deadline.MillisecondsLeft()) > 0) {
    if (events[0].revents != 0 || events[1].revents != 0) ReadOutput();
    ended_ = events[1].revents != 0;
  }
  return ended_ || deadline.MillisecondsLeft() > 0;
}

// As much as a pipe holds and no more: all that was written before the call, and an end to it even
// if the writer knows none.
void Process::ReadOutput() {
  std::string bytes(pipe_capacity_, '\0');
  size_t left = bytes.size();
  while (pipe_open_ && left > 0) {
    const ssize_t got = read(pipe_, bytes.data(), left);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;  // EAGAIN: no more for now
    output_.append(bytes.data(), static_cast<size_t>(got));
    left -= static_cast<size_t>(got);
    pipe_open_ = got > 0;
  }
}

int Process::ExitStatus() const {
  siginfo_t info = {};
  waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

std::string RunfilePath(absl::string_view root_relative) {
  const char* runfiles = getenv("TEST_SRCDIR");
  const char* workspace = getenv("TEST_WORKSPACE");
  if (runfiles == nullptr || workspace == nullptr) return std::string(root_relative);
  return absl::StrCat(runfiles, "/", workspace, "/", root_relative);
}

}  // namespace sluice
