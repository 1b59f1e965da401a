#include "common/launch/supervisor.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <linux/close_range.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/launch/child_process.h"

namespace sluice {
namespace {

constexpr char kVariable[] = "SLUICE_SUPERVISOR_SOCKET";  // holds the descriptor's number
constexpr char kJobIsOver[] = "the job is over";
constexpr int kSignalBase = 128;  // as shells do
constexpr int kCannotRun = 127;   // as above

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, ": ", strerror(errno)));
}

// Signals that ask a process to end.
constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

bool WasAskedToEnd(int status) {
  return WIFSIGNALED(status) && std::find(std::begin(kStopSignals), std::end(kStopSignals),
                                          WTERMSIG(status)) != std::end(kStopSignals);
}

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kStopSignals) sigaddset(&signals, signal);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler == SIG_IGN) sigdelset(&signals, SIGHUP);  // under nohup
  return signals;
}

// The words of this process's command line.
std::vector<std::string> CommandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::vector<std::string> EnvironmentWith(int fd) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  entries.push_back(absl::StrCat(kVariable, "=", fd));
  return entries;
}

// Runs in the child after fork(), where only system calls are allowed.
[[noreturn]] void BecomeProgram(pid_t parent, int fd, const sigset_t& mask, char** words,
                                char** environment) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotRun);  // the supervisor died before prctl()
  // MPI's launcher believes that a rank lives while its descriptors are open, so the child has
  // none.
  syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  fcntl(fd, F_SETFD, 0);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  // The file that this process was started from, even if another file has its name now.
  execve("/proc/self/exe", words, environment);
  _exit(kCannotRun);
}

std::string DescribeEnd(int status) {
  if (WIFSIGNALED(status)) {
    return absl::StrCat("was ended by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)),
                        ")");
  }
  return absl::StrCat("failed with exit code ", WEXITSTATUS(status));
}

int CodeOf(int status) {
  return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

absl::optional<SupervisorSocket> SupervisorSocket::Inherited() {
  const char* text = getenv(kVariable);
  int fd = -1;
  if (text == nullptr || !absl::SimpleAtoi(text, &fd)) return absl::nullopt;
  unsetenv(kVariable);
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return absl::nullopt;
  return SupervisorSocket(FileDescriptor(fd));
}

bool SupervisorSocket::IsInherited() { return getenv(kVariable) != nullptr; }

absl::Status SupervisorSocket::Send(absl::string_view message) const {
  const ssize_t sent = send(end_.get(), message.data(), message.size(), MSG_NOSIGNAL);
  if (sent < 0) return SystemError("send to the supervisor or its program");
  return absl::OkStatus();
}

absl::StatusOr<std::string> SupervisorSocket::Receive() const {
  char none = 0;
  ssize_t size = -1;
  do {
    size = recv(end_.get(), &none, 0, MSG_PEEK | MSG_TRUNC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return SystemError("receive from the supervisor or its program");
  if (size == 0) return absl::UnavailableError("the other side ended before it sent a message");
  std::string message(static_cast<size_t>(size), '\0');
  if (recv(end_.get(), message.data(), message.size(), 0) != size) {
    return SystemError("receive from the supervisor or its program");
  }
  return message;
}

absl::Status SupervisorSocket::SayJobIsOver() const { return Send(kJobIsOver); }

// A process that the program has started may still hold the other end.
bool SupervisorSocket::HeardJobIsOver() const {
  pollfd message = {end_.get(), POLLIN, 0};
  if (poll(&message, 1, 0) <= 0 || (message.revents & POLLIN) == 0) return false;
  const auto heard = Receive();
  return heard.ok() && *heard == kJobIsOver;
}

Supervisor::Supervisor(std::string name, absl::Duration short_life)
    : name_(std::move(name)), short_life_(short_life) {
  const sigset_t signals = StopSignals();
  sigprocmask(SIG_BLOCK, &signals, &outer_mask_);
  stop_signals_ = FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

absl::StatusOr<std::unique_ptr<Supervisor>> Supervisor::Start(std::string name,
                                                              absl::Duration short_life) {
  std::unique_ptr<Supervisor> supervisor(new Supervisor(std::move(name), short_life));
  if (!supervisor->stop_signals_.ok()) return SystemError("wait for signals");
  const absl::Status spawned = supervisor->Spawn();
  if (!spawned.ok()) return spawned;
  return supervisor;
}

Supervisor::~Supervisor() {
  if (pid_ != 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  sigprocmask(SIG_SETMASK, &outer_mask_, nullptr);
}

absl::Status Supervisor::Spawn() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return SystemError("make a socket");
  }
  socket_ = SupervisorSocket(FileDescriptor(ends[0]));
  const FileDescriptor childs(ends[1]);
  std::vector<std::string> words = CommandLine();
  std::vector<std::string> environment = EnvironmentWith(childs.get());
  const std::vector<char*> argv = ExecWords(words);
  const std::vector<char*> envp = ExecWords(environment);
  const pid_t self = getpid();
  spawned_ = RealClock().Now();
  const pid_t pid = fork();
  if (pid < 0) return SystemError("start a process");
  if (pid == 0) {
    BecomeProgram(self, childs.get(), outer_mask_, const_cast<char**>(argv.data()),
                  const_cast<char**>(envp.data()));
  }
  pid_ = pid;
  ended_ = FileDescriptor(OpenPidfd(pid));
  if (!ended_.ok()) return SystemError("watch a process");
  LOG(INFO) << name_ << ": run " << ++runs_ << " of its program is process " << pid_;
  return absl::OkStatus();
}

absl::optional<int> Supervisor::AwaitEnd(const std::string& brief, uint32_t max_restarts,
                                         bool (*is_final)(int code)) {
  WaitForEnd();
  if (socket_.HeardJobIsOver()) return 0;
  const int code = CodeOf(status_);
  const bool done = WIFEXITED(status_) && (code == 0 || is_final(code));
  if (done || stopping_ || WasAskedToEnd(status_)) return code;
  const std::string what = absl::StrCat(name_, ": its program ", DescribeEnd(status_));
  if (restarts_ >= max_restarts) {
    LOG(ERROR) << what << "; it is not started again, after " << restarts_ << " restarts";
    return code;
  }
  LOG(WARNING) << what << "; restart " << ++restarts_ << " of " << max_restarts;
  Pause();
  if (stopping_) return code;
  const absl::Status spawned = Spawn();
  if (!spawned.ok()) {
    LOG(ERROR) << name_ << ": " << spawned.message();
    return code;
  }
  // If the program has ended already, the next call notices.
  const absl::Status briefed = socket_.Send(brief);
  if (!briefed.ok()) LOG(WARNING) << name_ << ": " << briefed.message();
  return absl::nullopt;
}

int Supervisor::Run(const std::string& brief, uint32_t max_restarts, bool (*is_final)(int code)) {
  absl::optional<int> code;
  while (!code.has_value()) code = AwaitEnd(brief, max_restarts, is_final);
  return *code;
}

void Supervisor::WaitForEnd() {
  while (pid_ != 0) Watch(absl::InfiniteDuration());
}

// Waits until a program that ended at once may be started again.
void Supervisor::Pause() {
  if (RealClock().Now() - spawned_ >= short_life_) return;
  const absl::Time until = RealClock().Now() + short_life_;
  while (!stopping_ && RealClock().Now() < until) Watch(until - RealClock().Now());
}

// Waits until the program ends or this process is asked to end, at most for `limit`.
void Supervisor::Watch(absl::Duration limit) {
  pollfd events[] = {{pid_ == 0 ? -1 : ended_.get(), POLLIN, 0}, {stop_signals_.get(), POLLIN, 0}};
  const bool for_ever = limit == absl::InfiniteDuration();
  poll(events, 2, for_ever ? -1 : static_cast<int>(absl::ToInt64Milliseconds(limit)) + 1);
  signalfd_siginfo signal = {};
  if (read(stop_signals_.get(), &signal, sizeof(signal)) == sizeof(signal)) {
    stopping_ = true;
    if (pid_ != 0) kill(pid_, static_cast<int>(signal.ssi_signo));
  }
  int status = 0;
  if (pid_ == 0 || waitpid(pid_, &status, WNOHANG) != pid_) return;
  pid_ = 0;
  status_ = status;
}

}  // namespace sluice
