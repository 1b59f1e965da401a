// Unix sockets whose buffers hold whole chunks.
//
// gRPC's own sockets have the system's default buffers, about 200 KB, and gRPC has no setting for
// that. With buffers of 1 MB a round of 102 MB takes three quarters of the time. So both sides
// connect here and hand their descriptor to gRPC.

#ifndef SLUICE_COMMON_NET_UNIX_SOCKET_H_
#define SLUICE_COMMON_NET_UNIX_SOCKET_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"

namespace sluice {

// Connects to a unix socket. The descriptor is non-blocking. UNAVAILABLE has the system's message.
absl::StatusOr<FileDescriptor> ConnectUnix(const std::string& path);
// Listens at a path, and replaces the socket file that a dead server has left there. The descriptor
// is non-blocking. UNAVAILABLE has the system's message.
absl::StatusOr<FileDescriptor> ListenUnix(const std::string& path);

// Accepts the next connection that waits at a listening socket. If there is none, the descriptor is
// not ok and errno says why.
FileDescriptor AcceptUnix(const FileDescriptor& listening);

}  // namespace sluice

#endif  // SLUICE_COMMON_NET_UNIX_SOCKET_H_
