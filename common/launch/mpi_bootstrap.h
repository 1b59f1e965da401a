// All that MPI does for a job: it tells rank and size, makes one rank's error known to all, and
// broadcasts one blob. Then it is finalized.
//
// The only code that uses MPI. Modelled on gloo (gloo/mpi/context.cc): init, rank, size, one
// exchange.

#ifndef SLUICE_COMMON_LAUNCH_MPI_BOOTSTRAP_H_
#define SLUICE_COMMON_LAUNCH_MPI_BOOTSTRAP_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
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

// Tells why a rank cannot take part in the job; OK if it can.
using RankCheck = std::function<absl::Status(const MpiWorld&)>;

// Makes what rank 0 broadcasts, or tells why it cannot.
using BlobMaker = std::function<absl::StatusOr<std::string>(const MpiWorld&)>;

// Whether an MPI launcher (mpirun, srun) started this process.
bool LaunchedByMpi();

// Initialises MPI, calls `check` on every rank and then `make_blob` on rank 0, broadcasts the blob,
// and finalizes MPI. Every rank calls this once, from its main thread. If a call fails, no further
// call is made, and every rank returns an error with the code and the message of the lowest rank
// that failed; common/launch/failure.h tells who prints it. FAILED_PRECONDITION if MPI fails.
absl::StatusOr<MpiBootstrapResult> MpiBootstrap(const RankCheck& check, const BlobMaker& make_blob);

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_MPI_BOOTSTRAP_H_
