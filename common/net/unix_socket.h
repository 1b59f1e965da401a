// Unix sockets whose buffers hold whole chunks.
//
// gRPC's own have the system's default, about 200 KB, and it has no setting for that; with 1 MB a
// round of 102 MB takes three quarters of the time. So both sides connect themselves, and hand
// their end to gRPC.

#ifndef SLUICE_COMMON_NET_UNIX_SOCKET_H_
#define SLUICE_COMMON_NET_UNIX_SOCKET_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"

namespace sluice {

// Both do not block. UNAVAILABLE says why not, in the system's words.
absl::StatusOr<FileDescriptor> ConnectUnix(const std::string& path);
// Takes the place of a socket that a dead server left.
absl::StatusOr<FileDescriptor> ListenUnix(const std::string& path);

// The next connection that waits at a listening socket; none (not ok) if there is none, errno
// saying why.
FileDescriptor AcceptUnix(const FileDescriptor& listening);

}  // namespace sluice

#endif  // SLUICE_COMMON_NET_UNIX_SOCKET_H_
