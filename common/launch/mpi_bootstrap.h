// All that MPI does for a job: it tells rank and size, makes one rank's error known to all, takes
// a note of each rank to rank 0, broadcasts one blob, and hands another one to the first ranks.
// Then it is finalized.
//
// The only code that uses MPI. Modelled on gloo (gloo/mpi/context.cc): init, rank, size, one
// exchange.

#ifndef SLUICE_COMMON_LAUNCH_MPI_BOOTSTRAP_H_
#define SLUICE_COMMON_LAUNCH_MPI_BOOTSTRAP_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

// The launch, as a rank sees it.
struct MpiWorld {
  int rank = 0;
  int size = 1;
  bool one_node = true;  // all ranks share this node
};

// What rank 0 gives the other ranks.
struct MpiBlobs {
  std::string for_all;
  // Only the ranks 1 to `first` - 1 get this one; no other process sees it.
  std::string for_first = {};
  int first = 1;
};

struct MpiBootstrapResult {
  MpiWorld world;
  std::string blob;       // MpiBlobs::for_all
  std::string for_first;  // empty if this rank is none of those, also on rank 0
};

// Tells why a rank cannot take part in the job; OK if it can.
using RankCheck = std::function<absl::Status(const MpiWorld&)>;

// Makes what rank 0 broadcasts, or tells why it cannot.
using BlobMaker = std::function<absl::StatusOr<std::string>(const MpiWorld&)>;

// The same from what each rank noted, by rank.
using BlobsMaker =
    std::function<absl::StatusOr<MpiBlobs>(const MpiWorld&, const std::vector<std::string>& notes)>;

// Whether an MPI launcher (mpirun, srun) started this process.
bool LaunchedByMpi();

// Initialises MPI, calls `check` on every rank and then `make_blob` on rank 0, broadcasts the blob,
// and finalizes MPI. Every rank calls this once, from its main thread. If a call fails, no further
// call is made, and every rank returns an error with the code and the message of the lowest rank
// that failed; common/launch/failure.h tells who prints it. FAILED_PRECONDITION if MPI fails.
absl::StatusOr<MpiBootstrapResult> MpiBootstrap(const RankCheck& check, const BlobMaker& make_blob);

// The same with a note of this rank to rank 0, and with blobs that depend on the notes.
absl::StatusOr<MpiBootstrapResult> MpiBootstrap(const std::string& note, const RankCheck& check,
                                                const BlobsMaker& make_blobs);

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_MPI_BOOTSTRAP_H_
