// The start of a process that mpirun launches. Only this unit of server/ exchanges data through
// MPI.
//
// Without --max-restarts a rank runs its program itself. With it, the rank becomes a supervisor: it
// runs the program as a child process and starts it again when it dies
// (common/launch/supervisor.h). The supervisor tells the child what MPI told the rank. A server
// that is started again keeps its address, token, job and credentials, so that the workers find it.
//
// Rank 0 decides which ranks serve (server_ranks.h), and broadcasts it with the first server's
// address. A rank that is one of the other servers starts after that, and calls the first one. A
// rank that is started again keeps its part, since its supervisor has been told all that.

#ifndef SLUICE_SERVER_PROGRAM_LAUNCH_H_
#define SLUICE_SERVER_PROGRAM_LAUNCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/launch/job_ticket.h"
#include "common/launch/mpi_bootstrap.h"
#include "server/program/job_server.h"
#include "server/program/server_flags.h"

namespace sluice {

// OK as long as the servers of a launch may still run. When the first one has ended, it returns
// UNAVAILABLE, and tells the supervisor that this program ends well: mpirun would have ended this
// rank if the server had failed. Any thread may call it.
using LaunchCheck = std::function<absl::Status()>;

enum class ServerPlace {
  kAnyRanks,   // rank 0, and with --servers=S S - 1 others, spread over the nodes
  kThisRank,   // this program only serves, so the servers are the first ranks
  kElsewhere,  // a flag names it: all ranks are workers
};

struct Launch {
  MpiWorld world;
  JobTicket ticket;                    // empty if the servers are elsewhere
  std::vector<uint32_t> server_ranks;  // the ticket's; empty if the servers are elsewhere
  std::unique_ptr<JobServer> server;   // null on a worker
  LaunchCheck check_servers;           // null if this process cannot know
};

// Takes part in the launch. Call it once, in a process that an MPI launcher started, while the
// process has one thread. In a supervisor it does not return: the process exits with the program's
// exit code. If `check` fails on a rank, or rank 0 cannot start its server, every rank gets the
// error; ReportFailure() prints it on one of them. If another server cannot start, only its rank
// gets the error.
//
// `name` is the name that this rank was given as a worker. Empty: it was given none.
// INVALID_ARGUMENT if two workers have one name, or if --workers differs from the number of
// workers.
absl::StatusOr<Launch> TakePartInLaunch(const ServerFlags& flags, ServerPlace place,
                                        const std::string& name, const RankCheck& check);

// INVALID_ARGUMENT if the flags need mpirun and this process was started without it.
absl::Status CheckStartedByHand(const ServerFlags& flags);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_LAUNCH_H_
