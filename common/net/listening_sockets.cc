#include "common/net/listening_sockets.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/local_tcp.h"
#include "common/net/unix_socket.h"

namespace sluice {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::Status SystemSays() { return absl::UnavailableError(strerror(errno)); }

void Set(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof(value));
}

absl::StatusOr<AddressList> Resolve(const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (code != 0) return absl::UnavailableError(gai_strerror(code));
  return AddressList(found, freeaddrinfo);
}

// Accepted sockets inherit the options.
void SetTcpOptions(const addrinfo& where, absl::Duration unacknowledged, int fd) {
  Set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
      static_cast<int>(absl::ToInt64Milliseconds(unacknowledged)));
  if (where.ai_family == AF_INET6) Set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
}

absl::StatusOr<FileDescriptor> Listen(const addrinfo& where, absl::Duration unacknowledged) {
  FileDescriptor made(socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.ok()) return SystemSays();
  SetTcpOptions(where, unacknowledged, made.get());
  // Linux lets two sockets bind with SO_REUSEADDR and objects when the second one listens.
  if (bind(made.get(), where.ai_addr, where.ai_addrlen) != 0) return SystemSays();
  if (listen(made.get(), SOMAXCONN) != 0) return SystemSays();
  return made;
}

uint16_t PortOf(const FileDescriptor& socket) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size);
  // The port lies at the same place for IPv4 and IPv6.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&name)->sin_port);
}

// A host name may stand for an IPv6 address that this machine does not have.
bool IsAbsentFamily(int error) { return error == EADDRNOTAVAIL || error == EAFNOSUPPORT; }

}  // namespace

absl::StatusOr<ListeningSockets> ListeningSockets::Open(const Address& address,
                                                        absl::Duration unacknowledged) {
  ListeningSockets opened(address);
  const absl::Status status =
      address.is_unix() ? opened.OpenUnix() : opened.OpenTcp(unacknowledged);
  if (!status.ok()) return status;
  return opened;
}

ListeningSockets::~ListeningSockets() {
  if (!sockets_.empty() && address_.is_unix()) unlink(address_.unix_path.c_str());
}

absl::Status ListeningSockets::OpenUnix() {
  auto listening = ListenUnix(address_.unix_path);
  if (!listening.ok()) return listening.status();
  sockets_.push_back(*std::move(listening));
  return absl::OkStatus();
}

absl::Status ListeningSockets::OpenTcp(absl::Duration unacknowledged) {
  absl::Status last = absl::UnavailableError("its host has no address");
  // A socket at :: takes IPv4 connections, too.
  for (const std::string& host :
       {address_.host == "0.0.0.0" ? "::" : address_.host, address_.host}) {
    const auto found = Resolve(host, address_.port);
    if (!found.ok()) return found.status();
    for (const addrinfo* where = found->get(); where != nullptr; where = where->ai_next) {
      // The port lies at the same place for IPv4 and IPv6.
      reinterpret_cast<sockaddr_in*>(where->ai_addr)->sin_port = htons(address_.port);
      auto listening = Listen(*where, unacknowledged);
      if (!listening.ok() && !IsAbsentFamily(errno)) return listening.status();
      last = listening.status();
      if (!listening.ok()) continue;
      address_.port = PortOf(*listening);
      sockets_.push_back(*std::move(listening));
    }
    if (!sockets_.empty()) return absl::OkStatus();
  }
  return last;
}

FileDescriptor ListeningSockets::Accept(const FileDescriptor& listening) const {
  if (address_.is_unix()) return AcceptUnix(listening);
  FileDescriptor accepted(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (accepted.ok()) SendWithoutPacingIfLocal(accepted.get());
  return accepted;
}

}  // namespace sluice
