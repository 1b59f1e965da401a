#include "common/net/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/net/address.h"

namespace sluice {
namespace {

constexpr int kBufferBytes = 1 << 20;
constexpr int kBacklog = 1024;

absl::Status Unavailable() { return absl::UnavailableError(strerror(errno)); }

// Enlarges the send buffer; a unix socket has no receive buffer of its own. The system may allow
// less.
void EnlargeBuffer(int fd) {
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof(kBufferBytes));
}

class UnixName {
 public:
  // The caller has checked that `path` fits.
  explicit UnixName(const std::string& path) {
    name_.sun_family = AF_UNIX;
    path.copy(name_.sun_path, sizeof(name_.sun_path) - 1);
  }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name_); }
  socklen_t size() const { return sizeof(name_); }

 private:
  sockaddr_un name_ = {};
};

absl::StatusOr<FileDescriptor> MakeSocket(const std::string& path) {
  if (path.size() > Address::kMaxUnixPath) {
    return absl::UnavailableError(
        absl::StrCat("its path has more than ", Address::kMaxUnixPath, " bytes"));
  }
  FileDescriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.ok()) return Unavailable();
  return made;
}

}  // namespace

absl::StatusOr<FileDescriptor> ConnectUnix(const std::string& path) {
  auto made = MakeSocket(path);
  if (!made.ok()) return made;
  EnlargeBuffer(made->get());
  const UnixName name(path);
  if (connect(made->get(), name.get(), name.size()) != 0) return Unavailable();
  return made;
}

absl::StatusOr<FileDescriptor> ListenUnix(const std::string& path) {
  if (ConnectUnix(path).ok()) return absl::UnavailableError("another server listens there");
  auto made = MakeSocket(path);
  if (!made.ok()) return made;
  const UnixName name(path);
  bool bound = bind(made->get(), name.get(), name.size()) == 0;
  if (!bound && errno == EADDRINUSE) {
    unlink(path.c_str());
    bound = bind(made->get(), name.get(), name.size()) == 0;
  }
  if (!bound || listen(made->get(), kBacklog) != 0) return Unavailable();
  return made;
}

FileDescriptor AcceptUnix(const FileDescriptor& listening) {
  FileDescriptor accepted(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (accepted.ok()) EnlargeBuffer(accepted.get());
  return accepted;
}

}  // namespace sluice
