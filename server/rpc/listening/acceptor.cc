#include "server/rpc/listening/acceptor.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace sluice {
namespace {

constexpr int kForever = -1;
// The pause before it accepts again, after the system had no memory or no free descriptor.
constexpr absl::Duration kPause = absl::Milliseconds(100);
// The log has at most one line in this time about connections that were refused or closed.
constexpr absl::Duration kBetweenLines = absl::Seconds(10);
// Judging all connections takes some 10 us for each, so it is not done more often than this.
constexpr absl::Duration kBetweenJudgements = absl::Milliseconds(10);

// How often it looks how many bytes have arrived, which takes less than a microsecond for each
// connection.
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(250);

absl::Duration Now() { return RealClock().Now() - absl::UnixEpoch(); }

FileDescriptor SpareDescriptor() { return FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool Watch(const FileDescriptor& events, int fd, uint32_t what, int operation = EPOLL_CTL_ADD) {
  epoll_event event = {};
  event.events = what;
  event.data.fd = fd;
  return epoll_ctl(events.get(), operation, fd, &event) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Start(ListeningSockets listening,
                                                          AcceptorOptions options,
                                                          CallCounter& calls) {
  FileDescriptor events(epoll_create1(EPOLL_CLOEXEC));
  if (!events.ok() || !calls.event().ok()) return absl::UnavailableError(strerror(errno));
  return std::unique_ptr<Acceptor>(
      new Acceptor(std::move(listening), std::move(options), calls, std::move(events)));
}

Acceptor::Acceptor(ListeningSockets listening, AcceptorOptions options, CallCounter& calls,
                   FileDescriptor events)
    : listening_(std::move(listening)),
      options_(std::move(options)),
      calls_(calls),
      events_(std::move(events)),
      end_(eventfd(0, EFD_CLOEXEC)),
      spare_(SpareDescriptor()),
      connections_(options_.limits) {
  Watch(events_, end_.get(), EPOLLIN);
  Watch(events_, calls_.event().get(), EPOLLIN);
  for (const FileDescriptor& socket : listening_.sockets()) Watch(events_, socket.get(), EPOLLIN);
  thread_ = std::thread([this] { Run(); });
}

Acceptor::~Acceptor() {
  eventfd_write(end_.get(), 1);
  thread_.join();
}

void Acceptor::Run() {
  constexpr int kMostEvents = 64;
  epoll_event ready[kMostEvents];
  while (!ended_) {
    const int count = epoll_wait(events_.get(), ready, kMostEvents, WaitTime(Now()));
    const absl::Duration now = Now();
    for (int i = 0; i < count; ++i) Handle(ready[i].data.fd, now);
    if (!listens_ && now >= paused_until_) Listen(true);
    JudgeIfDue(now);
  }
}

// In milliseconds, rounded up.
int Acceptor::WaitTime(absl::Duration now) const {
  absl::Duration next = connections_.next_due();
  if (!listens_) next = std::min(next, paused_until_);
  if (many_calls_) next = std::min(next, judged_ + kBetweenJudgements);
  if (connections_.size() > 0) next = std::min(next, looked_ + kBetweenLooks);
  if (next == absl::InfiniteDuration()) return kForever;
  return static_cast<int>(absl::ToInt64Milliseconds(
      absl::Ceil(std::max(next - now, absl::ZeroDuration()), absl::Milliseconds(1))));
}

void Acceptor::Handle(int fd, absl::Duration now) {
  if (fd == end_.get()) {
    ended_ = true;
    return;
  }
  if (fd == calls_.event().get()) {
    calls_.Reset();
    many_calls_ = true;
    return;
  }
  for (const FileDescriptor& socket : listening_.sockets()) {
    if (fd == socket.get()) return AcceptAll(socket, now);
  }
  // The connection has ended. It is removed from the set before its handle is closed, because the
  // set would keep it while gRPC has a descriptor of the same connection.
  epoll_ctl(events_.get(), EPOLL_CTL_DEL, fd, nullptr);
  connections_.Remove(fd);
  calls_.SetConnections(connections_.size());
}

void Acceptor::AcceptAll(const FileDescriptor& socket, absl::Duration now) {
  constexpr int kMostAtOnce = 64;  // then it looks at other events
  for (int i = 0; i < kMostAtOnce; ++i) {
    FileDescriptor accepted = listening_.Accept(socket);
    if (!accepted.ok()) {
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        HandleError(socket, errno, now);
      }
      return;
    }
    Take(std::move(accepted), now);
  }
}

void Acceptor::Take(FileDescriptor accepted, absl::Duration now) {
  const std::string peer = PeerOf(accepted.get());
  std::string why = connections_.WhyFull(peer);
  FileDescriptor handle(why.empty() ? fcntl(accepted.get(), F_DUPFD_CLOEXEC, 0) : -1);
  if (why.empty() && !handle.ok()) why = strerror(errno);
  if (!why.empty()) {
    Say(absl::StrCat("refused a connection from ", ShownPeer(peer), ": ", why), now);
    return;
  }
  Watch(events_, handle.get(), 0);  // an end is always told
  connections_.Add(std::move(handle), peer, now);
  calls_.SetConnections(connections_.size());
  options_.serve(std::move(accepted));
  connections_.Learn(options_.grpc_server);
}

// Without a free descriptor a connection would wait at the socket, and the socket would stay ready.
// So the connection is taken with the spare descriptor, and closed.
void Acceptor::HandleError(const FileDescriptor& socket, int error, absl::Duration now) {
  if (error == EMFILE || error == ENFILE) {
    spare_ = FileDescriptor();
    listening_.Accept(socket);
    spare_ = SpareDescriptor();
  }
  Say(absl::StrCat("cannot take a connection to ", address().ToString(), ": ", strerror(error)),
      now);
  paused_until_ = now + kPause;
  Listen(false);
}

void Acceptor::JudgeIfDue(absl::Duration now) {
  using Which = Connections::Which;
  if (many_calls_ && now >= judged_ + kBetweenJudgements) {
    JudgeNow(Which::kAll, now);
    judged_ = now;
    many_calls_ = false;
  } else if (now >= connections_.next_due()) {
    JudgeNow(Which::kWithoutCall, now);
  }
  if (now < looked_ + kBetweenLooks) return;
  JudgeNow(Which::kGrown, now);
  looked_ = now;
}

void Acceptor::JudgeNow(Connections::Which which, absl::Duration now) {
  connections_.Learn(options_.grpc_server);
  for (const std::string& closed : connections_.Judge(which, now)) Say(closed, now);
}

void Acceptor::Listen(bool on) {
  listens_ = on;
  for (const FileDescriptor& socket : listening_.sockets()) {
    Watch(events_, socket.get(), on ? uint32_t{EPOLLIN} : 0, EPOLL_CTL_MOD);
  }
}

void Acceptor::Say(const std::string& what, absl::Duration now) {
  if (now < said_ + kBetweenLines) {
    ++unsaid_;
    return;
  }
  LOG(WARNING) << what << "; " << connections_.size() << " connections are open"
               << (unsaid_ == 0
                       ? ""
                       : absl::StrCat("; ", unsaid_, " more lines like this since the last"));
  said_ = now;
  unsaid_ = 0;
}

}  // namespace sluice
