// The address on which the server of a cell listens, if its row uses sockets.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_ENDPOINT_H_
#define SLUICE_TOOLS_BENCH_HARNESS_ENDPOINT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/net/address.h"
#include "common/net/private_directory.h"

namespace sluice::bench {

enum class SocketKind { kUnix, kTcp };

struct Endpoint {
  Address address;                              // port 0: any free one
  std::unique_ptr<PrivateDirectory> directory;  // holds the unix socket
};

// Returns a unix socket in a new private directory, or a port on loopback.
absl::StatusOr<Endpoint> MakeEndpoint(SocketKind socket);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_ENDPOINT_H_
