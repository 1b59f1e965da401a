// The sockets at which a server waits for connections: TCP or a unix socket.

#ifndef SLUICE_COMMON_NET_LISTENING_SOCKETS_H_
#define SLUICE_COMMON_NET_LISTENING_SOCKETS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/file_descriptor.h"
#include "common/net/address.h"

namespace sluice {

// All sockets are non-blocking. The destructor closes them, and removes the file of a unix socket.
// Can be moved, but not copied. Any thread may use it.
class ListeningSockets {
 public:
  // Listens at all addresses to which the host resolves, with one port. 0.0.0.0 and :: both mean
  // IPv4 and IPv6. A TCP connection breaks when its peer acknowledges nothing for `unacknowledged`.
  // UNAVAILABLE has the system's message, for example "Address already in use".
  static absl::StatusOr<ListeningSockets> Open(const Address& address,
                                               absl::Duration unacknowledged);
  ListeningSockets(ListeningSockets&& other) noexcept = default;
  ~ListeningSockets();

  // If port 0 was asked for, this has the port that was chosen.
  const Address& address() const { return address_; }
  const std::vector<FileDescriptor>& sockets() const { return sockets_; }

  // Accepts the next connection that waits at one of the sockets. If there is none, the descriptor
  // is not ok and errno says why. A connection within this machine is tuned (local_tcp.h).
  FileDescriptor Accept(const FileDescriptor& listening) const;

 private:
  explicit ListeningSockets(const Address& address) : address_(address) {}

  absl::Status OpenTcp(absl::Duration unacknowledged);
  absl::Status OpenUnix();

  Address address_;
  std::vector<FileDescriptor> sockets_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_NET_LISTENING_SOCKETS_H_
