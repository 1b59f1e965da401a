// Starts the server of a launch by mpirun, on rank 0.

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

// Starts a server with a new job id and token. If all ranks are on one node, it listens on a
// private unix socket; otherwise on TCP, with new credentials for mutual TLS. Flags may choose
// another token, address or credentials. If the brief names a server, an earlier process of this
// rank has died, and the new server takes over its address, job id, token and credentials.
// INVALID_ARGUMENT if there are fewer than two ranks, or if the flags contradict each other. Other
// errors are Server::Start()'s.
absl::StatusOr<LaunchedServer> StartLaunchedServer(const ServerFlags& flags,
                                                   const LaunchBrief& brief);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_LAUNCHED_SERVER_H_
