// The start of a process that mpirun launches. Only this unit of server/ exchanges data through
// MPI.
//
// Without --max-restarts a rank runs its program itself. With it, the rank becomes a supervisor: it
// runs the program as a child process and starts it again when it dies
// (common/launch/supervisor.h). The supervisor tells the child what MPI told the rank. A server
// that is started again keeps its address, token, job and credentials, so that the workers find it.

#ifndef SLUICE_SERVER_PROGRAM_LAUNCH_H_
#define SLUICE_SERVER_PROGRAM_LAUNCH_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/launch/job_ticket.h"
#include "common/launch/mpi_bootstrap.h"
#include "server/program/server_flags.h"
#include "server/server.h"

namespace sluice {

enum class ServerPlace {
  kRankZero,
  kElsewhere,  // a flag names it: all ranks are workers
};

struct Launch {
  MpiWorld world;
  JobTicket ticket;                // empty if the server is elsewhere
  std::unique_ptr<Server> server;  // of rank 0, else null
};

// Takes part in the launch. Call it once, in a process that an MPI launcher started, while the
// process has one thread. In a supervisor it does not return: the process exits with the program's
// exit code. If `check` fails on a rank, or rank 0 cannot start its server, every rank gets the
// error; ReportFailure() prints it on one of them.
absl::StatusOr<Launch> TakePartInLaunch(const ServerFlags& flags, ServerPlace place,
                                        const RankCheck& check);

// INVALID_ARGUMENT if the flags need mpirun and this process was started without it.
absl::Status CheckStartedByHand(const ServerFlags& flags);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_LAUNCH_H_
