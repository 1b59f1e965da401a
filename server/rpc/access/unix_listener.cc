#include "server/rpc/access/unix_listener.h"

#include <glog/logging.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/net/unix_socket.h"

namespace sluice {
namespace {

constexpr int kForever = -1;
// The pause before it accepts again, after the system had no free descriptor.
constexpr int kPauseMs = 100;

bool IsReadable(int fd, int timeout_ms) {
  pollfd wait = {fd, POLLIN, 0};
  return poll(&wait, 1, timeout_ms) > 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Start(
    const std::string& path, std::function<void(FileDescriptor)> connected) {
  auto listening = ListenUnix(path);
  if (!listening.ok()) return listening.status();
  FileDescriptor end(eventfd(0, EFD_CLOEXEC));
  if (!end.ok()) return absl::UnavailableError(strerror(errno));
  return std::unique_ptr<UnixListener>(
      new UnixListener(path, *std::move(listening), std::move(end), std::move(connected)));
}

UnixListener::UnixListener(const std::string& path, FileDescriptor listening, FileDescriptor end,
                           std::function<void(FileDescriptor)> connected)
    : path_(path),
      listening_(std::move(listening)),
      end_(std::move(end)),
      connected_(std::move(connected)),
      thread_([this] { Listen(); }) {}

UnixListener::~UnixListener() {
  eventfd_write(end_.get(), 1);
  thread_.join();
  unlink(path_.c_str());
}

void UnixListener::Listen() {
  for (;;) {
    pollfd waits[] = {{listening_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    poll(waits, 2, kForever);
    if (waits[1].revents != 0) return;
    if (waits[0].revents == 0) continue;
    FileDescriptor accepted = AcceptUnix(listening_);
    if (accepted.ok()) {
      connected_(std::move(accepted));
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      LOG_EVERY_N(WARNING, 100) << "cannot take a connection to " << path_ << ": "
                                << strerror(errno);
      if (IsReadable(end_.get(), kPauseMs)) return;
    }
  }
}

}  // namespace sluice
