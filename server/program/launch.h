// The start of a process that mpirun launches. Only this unit of server/ exchanges data through
// MPI.
//
// Without --max-restarts a rank runs its program itself. With it, the rank becomes a supervisor: it
// runs the program as a child process and starts it again when it dies
// (common/launch/supervisor.h). The supervisor tells the child what MPI told the rank. A server
// that is started again keeps its address, token, job and credentials, so that the workers find it.
//
// Rank 0 decides how many servers there are, and broadcasts it with the first server's address. A
// rank that is one of the others starts after that, and calls the first server.

#ifndef SLUICE_SERVER_PROGRAM_LAUNCH_H_
#define SLUICE_SERVER_PROGRAM_LAUNCH_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/launch/job_ticket.h"
#include "common/launch/mpi_bootstrap.h"
#include "server/program/job_server.h"
#include "server/program/server_flags.h"

namespace sluice {

enum class ServerPlace {
  kFirstRanks,  // rank 0, and with --servers=S the S - 1 ranks after it
  kElsewhere,   // a flag names it: all ranks are workers
};

struct Launch {
  MpiWorld world;
  JobTicket ticket;                   // empty if the servers are elsewhere
  int servers = 0;                    // of this launch, which are its first ranks
  std::unique_ptr<JobServer> server;  // null on a worker
};

// Takes part in the launch. Call it once, in a process that an MPI launcher started, while the
// process has one thread. In a supervisor it does not return: the process exits with the program's
// exit code. If `check` fails on a rank, or rank 0 cannot start its server, every rank gets the
// error; ReportFailure() prints it on one of them. If another server cannot start, only its rank
// gets the error.
absl::StatusOr<Launch> TakePartInLaunch(const ServerFlags& flags, ServerPlace place,
                                        const RankCheck& check);

// INVALID_ARGUMENT if the flags need mpirun and this process was started without it.
absl::Status CheckStartedByHand(const ServerFlags& flags);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_LAUNCH_H_
