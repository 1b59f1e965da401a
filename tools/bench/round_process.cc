#include "tools/bench/round_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sluice::bench {
namespace {

constexpr char kThisProgram[] = "/proc/self/exe";

class Pipe {
 public:
  Pipe() : open_(pipe2(ends_, O_CLOEXEC) == 0) {}
  ~Pipe() {
    for (const int end : ends_) {
      if (open_ && end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool open() const { return open_; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  // What is taken is the caller's.
  int TakeReadEnd() { return std::exchange(ends_[0], -1); }
  int TakeWriteEnd() { return std::exchange(ends_[1], -1); }

 private:
  int ends_[2];
  const bool open_;
};

// Starts this program again with `flags`, its stdin and stdout being `input` and `output`; 0 or an
// errno.
int Spawn(std::vector<std::string> flags, int input, int output, pid_t* pid) {
  flags.insert(flags.begin(), kThisProgram);
  std::vector<char*> argv;
  for (std::string& flag : flags) argv.push_back(flag.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  const int error = posix_spawn(pid, kThisProgram, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RoundProcess>> RoundProcess::Start(const Part& part) {
  std::unique_ptr<RoundProcess> process(new RoundProcess(part));
  const absl::Status launched = process->Launch();
  if (!launched.ok()) return launched;
  return process;
}

RoundProcess::~RoundProcess() {
  if (pid_ == 0) return;
  to_.reset();
  kill(pid_, SIGTERM);
  WaitFor(pid_);
}

absl::Status RoundProcess::Launch() {
  Pipe input, output;
  if (!input.open() || !output.open()) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  pid_t pid = 0;
  const int error = Spawn(PartFlags(part_), input.read_end(), output.write_end(), &pid);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", Describe(part_)));
  pid_ = pid;
  to_.reset(fdopen(input.TakeWriteEnd(), "w"));
  from_.reset(fdopen(output.TakeReadEnd(), "r"));
  return absl::OkStatus();
}

absl::StatusOr<std::string> RoundProcess::AwaitReady() {
  const auto line = ReadLine();
  if (!line.ok()) return line.status();
  absl::string_view detail = *line;
  if (absl::ConsumePrefix(&detail, "ready ")) return std::string(detail);
  return absl::InternalError(
      absl::StrCat(Describe(part_), " said \"", *line, "\", expected \"ready\""));
}

absl::Status RoundProcess::BeginRound() { return Write("round"); }

absl::StatusOr<double> RoundProcess::EndRound() {
  const auto line = ReadLine();
  if (!line.ok()) return line.status();
  double seconds = 0;
  if (absl::SimpleAtod(*line, &seconds)) return seconds;
  return absl::InternalError(
      absl::StrCat(Describe(part_), " said \"", *line, "\", expected seconds"));
}

absl::StatusOr<Usage> RoundProcess::AskUsage() {
  const absl::Status asked = Write("usage");
  if (!asked.ok()) return asked;
  const auto line = ReadLine();
  if (!line.ok()) return line.status();
  const std::vector<std::string> words = absl::StrSplit(*line, ' ');
  Usage usage;
  if (words.size() == 2 && absl::SimpleAtod(words[0], &usage.cpu_seconds) &&
      absl::SimpleAtoi(words[1], &usage.peak_bytes)) {
    return usage;
  }
  return absl::InternalError(
      absl::StrCat(Describe(part_), " said \"", *line, "\", expected CPU-seconds and bytes"));
}

absl::Status RoundProcess::End() {
  to_.reset();
  const int status = WaitFor(pid_);
  pid_ = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  const std::string how = WIFSIGNALED(status) ? absl::StrCat("by signal ", WTERMSIG(status))
                                              : absl::StrCat("with ", WEXITSTATUS(status));
  return absl::AbortedError(absl::StrCat(Describe(part_), " ended ", how, ", expected 0"));
}

absl::Status RoundProcess::Write(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  if (fputs(text.c_str(), to_.get()) >= 0 && fflush(to_.get()) == 0) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(Describe(part_), " no longer listens"));
}

absl::StatusOr<std::string> RoundProcess::ReadLine() {
  char line[512];
  if (fgets(line, sizeof(line), from_.get()) != nullptr) {
    return std::string(absl::StripSuffix(line, "\n"));
  }
  return absl::AbortedError(absl::StrCat(Describe(part_), " ended before its time"));
}

}  // namespace sluice::bench
