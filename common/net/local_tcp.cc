#include "common/net/local_tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "absl/strings/string_view.h"

namespace sluice {
namespace {

constexpr absl::string_view kWithoutPacing = "reno";

// The IP address of one end of a socket.
struct End {
  // `get` is getsockname() or getpeername(). The family stays AF_UNSPEC if there is no such end.
  template <typename Get>
  End(int socket, Get get) {
    sockaddr_storage name = {};
    socklen_t size = sizeof(name);
    if (get(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) return;
    family = name.ss_family;
    if (family == AF_INET) ipv4 = reinterpret_cast<const sockaddr_in*>(&name)->sin_addr;
    if (family == AF_INET6) ipv6 = reinterpret_cast<const sockaddr_in6*>(&name)->sin6_addr;
  }

  int family = AF_UNSPEC;
  in_addr ipv4 = {};
  in6_addr ipv6 = {};
};

bool IsWithinMachine(int socket) {
  const End own(socket, getsockname), peer(socket, getpeername);
  if (own.family != peer.family) return false;
  if (own.family == AF_INET) {
    return own.ipv4.s_addr == peer.ipv4.s_addr || ntohl(peer.ipv4.s_addr) >> 24 == 127;
  }
  return own.family == AF_INET6 && IN6_ARE_ADDR_EQUAL(&own.ipv6, &peer.ipv6);
}

}  // namespace

void SendWithoutPacing(int socket) {
  setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kWithoutPacing.data(),
             static_cast<socklen_t>(kWithoutPacing.size()));
}

void SendWithoutPacingIfLocal(int socket) {
  if (IsWithinMachine(socket)) SendWithoutPacing(socket);
}

}  // namespace sluice
