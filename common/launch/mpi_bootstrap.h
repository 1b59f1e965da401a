// All that MPI does for a job. It tells each rank its number, node and the number of ranks. It
// tells all ranks if one has an error. It brings a note of each rank to rank 0, broadcasts one
// blob, and hands another blob to some ranks.
//
// Then each rank finalizes MPI, unless a program of the launch had initialised it before. In that
// case the ranks whose program initialised MPI leave it to their program. The other ranks finalize
// MPI when they exit.
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
  bool one_node = true;       // all ranks share this node
  int node = 0;               // the lowest rank on this rank's node, which identifies the node
  bool programs_own = false;  // the program has initialised MPI, and goes on to use it
};

// What rank 0 gives the other ranks.
struct MpiBlobs {
  std::string for_all;
  // Only the ranks `chosen` get this one; no other process sees it. It is not empty if there are
  // any. Rank 0 is none of them.
  std::string for_chosen = {};
  std::vector<int> chosen = {};
};

struct MpiBootstrapResult {
  MpiWorld world;
  std::string blob;        // MpiBlobs::for_all
  std::string for_chosen;  // empty if this rank is none of those, also on rank 0
};

// Tells why a rank cannot take part in the job; OK if it can.
using RankCheck = std::function<absl::Status(const MpiWorld&)>;

// Makes what this rank notes for rank 0.
using NoteMaker = std::function<std::string(const MpiWorld&)>;

// Makes what rank 0 broadcasts, or tells why it cannot.
using BlobMaker = std::function<absl::StatusOr<std::string>(const MpiWorld&)>;

// The same from what each rank noted, by rank.
using BlobsMaker =
    std::function<absl::StatusOr<MpiBlobs>(const MpiWorld&, const std::vector<std::string>& notes)>;

// Whether an MPI launcher (mpirun, srun) started this process.
bool LaunchedByMpi();

// Initialises MPI, unless the program has done so. Calls `check` on every rank and then `make_blob`
// on rank 0, and broadcasts the blob. Finalizes MPI, unless a program uses it. Every rank calls
// this once, from its main thread.
//
// If a call of `check` or `make_blob` fails, no further call is made. Every rank then returns an
// error with the code and the message of the lowest rank that failed. common/launch/failure.h
// decides which rank prints it. FAILED_PRECONDITION if MPI fails, or was finalized before.
absl::StatusOr<MpiBootstrapResult> MpiBootstrap(const RankCheck& check, const BlobMaker& make_blob);

// The same with a note of this rank to rank 0, and with blobs that depend on the notes.
absl::StatusOr<MpiBootstrapResult> MpiBootstrap(const NoteMaker& note, const RankCheck& check,
                                                const BlobsMaker& make_blobs);

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_MPI_BOOTSTRAP_H_
