// Starts the servers of a launch by mpirun: the first one on rank 0, the others on the ranks that
// ChooseServerRanks() names.

#ifndef SLUICE_SERVER_PROGRAM_LAUNCHED_SERVER_H_
#define SLUICE_SERVER_PROGRAM_LAUNCHED_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/launch/job_ticket.h"
#include "common/launch/launch_brief.h"
#include "common/launch/mpi_bootstrap.h"
#include "server/program/job_server.h"
#include "server/program/server_flags.h"

namespace sluice {

// The names and addresses by which other ranks may reach a server of this rank. Rank 0 needs those
// of all servers for their certificate.
std::vector<std::string> HostsOfRank(const ServerFlags& flags);

struct LaunchedServer {
  std::unique_ptr<JobServer> server;
  ServerIdentity identity;
};

// Starts the first server, with a new job id and token. If all ranks are on one node, it listens on
// a private unix socket; otherwise on TCP, with new credentials for mutual TLS. Flags may choose
// another token, address or credentials. If the brief names a server, an earlier process of this
// rank has died, and the new server takes over its address, job id, token and credentials.
// brief.notes are those of all ranks; with them it chooses the ranks of the other servers.
// INVALID_ARGUMENT if no rank is left to be a worker, or if the flags contradict each other. Other
// errors are Server::Start()'s.
absl::StatusOr<LaunchedServer> StartLaunchedServer(const ServerFlags& flags,
                                                   const LaunchBrief& brief);

// What the other ranks of a server's launch get. The ranks of the other servers get the servers'
// credentials, and the workers theirs.
MpiBlobs BlobsOf(const ServerIdentity& server);

// Starts a server that is not the first one. The brief names the first server, with the ticket that
// BlobsOf() makes for the rank of such a server, which is one of the ticket's server_ranks. It
// listens on a private unix socket if the first server listens on a unix socket; otherwise on a TCP
// port that the system chooses, at the host of --listen or --advertise. Errors are
// ReplicaServer::Start()'s.
absl::StatusOr<std::unique_ptr<JobServer>> StartLaunchedReplica(const ServerFlags& flags,
                                                                const LaunchBrief& brief);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_LAUNCHED_SERVER_H_
