// A process's part in a launch by mpirun: the one place that speaks to MPI.
//
// Unsupervised, a rank is its program. With --max-restarts it is a supervisor, and the program is
// its child, which it starts again when it dies (common/launch/supervisor.h). The child is told
// what MPI would have told it. A server that is started again keeps address, token, job and
// credentials, so that the workers find it.

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

// Takes part in the launch, once in a process that an MPI launcher started, while it has one
// thread. A rank that only supervises does not come back: it exits as its program did. Every rank
// gets an UNAVAILABLE that says why rank 0 has no server.
absl::StatusOr<Launch> TakePartInLaunch(const ServerFlags& flags, ServerPlace place);

// INVALID_ARGUMENT if the flags ask for what a process that was started by hand has not.
absl::Status CheckStartedByHand(const ServerFlags& flags);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_LAUNCH_H_
