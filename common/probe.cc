#include "common/probe.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

class Socket {
 public:
  explicit Socket(int family) : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

sockaddr_un UnixName(const Address& address) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  address.unix_path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  return name;
}

std::string WhyNotBindableUnix(const Address& address) {
  if (address.unix_path.size() > Address::kMaxUnixPath) {
    return absl::StrCat("its path has more than ", Address::kMaxUnixPath, " bytes");
  }
  const Socket socket(AF_UNIX);
  const sockaddr_un name = UnixName(address);
  if (bind(socket.fd(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0) {
    unlink(address.unix_path.c_str());
    return "unknown reason";
  }
  return strerror(errno);
}

}  // namespace

bool IsListening(const Address& address) {
  const Socket socket(AF_UNIX);
  const sockaddr_un name = UnixName(address);
  return connect(socket.fd(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
}

std::string WhyNotBindable(const Address& address) {
  if (address.is_unix()) return WhyNotBindableUnix(address);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int code =
      getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (code != 0) return gai_strerror(code);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> results(found, freeaddrinfo);
  const Socket socket(results->ai_family);
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.fd(), results->ai_addr, results->ai_addrlen) != 0) return strerror(errno);
  // Linux lets two sockets bind with SO_REUSEADDR and objects when the second one listens.
  return listen(socket.fd(), 1) != 0 ? strerror(errno) : "unknown reason";
}

}  // namespace sluice
