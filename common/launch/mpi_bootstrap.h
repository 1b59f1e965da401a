// All that MPI does for a job: it tells rank and size and broadcasts one blob. Then it is
// finalized.
//
// The only code that uses MPI. Modelled on gloo (gloo/mpi/context.cc): init, rank, size, one
// exchange.

#ifndef SLUICE_COMMON_LAUNCH_MPI_BOOTSTRAP_H_
#define SLUICE_COMMON_LAUNCH_MPI_BOOTSTRAP_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace sluice {

// The launch, as a rank sees it.
struct MpiWorld {
  int rank = 0;
  int size = 1;
  bool one_node = true;  // all ranks share this node
};

struct MpiBootstrapResult {
  MpiWorld world;
  std::string blob;  // what rank 0's make_blob returned
};

// Whether an MPI launcher (mpirun, srun) started this process.
bool LaunchedByMpi();

// Initialises MPI, calls `make_blob` on rank 0, broadcasts the result, and finalizes MPI. Every
// rank calls this once, from its main thread. FAILED_PRECONDITION if MPI fails.
absl::StatusOr<MpiBootstrapResult> MpiBootstrap(
    const std::function<std::string(const MpiWorld&)>& make_blob);

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_MPI_BOOTSTRAP_H_
