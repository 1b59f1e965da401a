// The server of a launch by mpirun: rank 0.

#ifndef SLUICE_SERVER_PROGRAM_LAUNCHED_SERVER_H_
#define SLUICE_SERVER_PROGRAM_LAUNCHED_SERVER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/launch/launch_brief.h"
#include "server/program/server_flags.h"
#include "server/server.h"

namespace sluice {

struct LaunchedServer {
  std::unique_ptr<Server> server;
  ServerIdentity identity;
};

// With a new job id and token; on a private unix socket if all ranks share the node, else on TCP,
// with new credentials for mutual TLS unless the flags choose. A brief that names a server is of an
// earlier process of this rank, whose place the new one takes.
absl::StatusOr<LaunchedServer> StartLaunchedServer(const ServerFlags& flags,
                                                   const LaunchBrief& brief);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_LAUNCHED_SERVER_H_
