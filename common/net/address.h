// The address of a server: host:port, or a unix socket.

#ifndef SLUICE_COMMON_NET_ADDRESS_H_
#define SLUICE_COMMON_NET_ADDRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// "127.0.0.1:7070", "[::1]:7070", "node7:7070", or "unix:/path". The text is also a gRPC target.
struct Address {
  std::string host;  // without brackets; empty for a unix socket
  uint16_t port = 0;
  std::string unix_path;

  // The longest path that the system's sockaddr_un can hold, in bytes.
  static constexpr size_t kMaxUnixPath = 107;

  bool is_unix() const { return !unix_path.empty(); }
  // True for a unix socket or loopback, which other nodes cannot reach.
  bool IsLocal() const;
  // True for "0.0.0.0" and "::", which mean every address of the machine that listens.
  bool IsWildcard() const { return host == "0.0.0.0" || host == "::"; }
  std::string ToString() const;
};

// Where others reach a server that listens on `address`, if its host is called `host` by them. The
// same address if that is empty, or for a unix socket.
Address AdvertisedAs(const Address& address, const std::string& host);

// BAD_ARGUMENT quotes the text and shows the expected forms. Port 0 is allowed: it means any free
// port.
absl::StatusOr<Address> ParseAddress(absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_COMMON_NET_ADDRESS_H_
