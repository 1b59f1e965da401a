// A group of ranks that uses gloo by torch::distributed: its allreduce sends in rings.

#ifndef SLUICE_WORKER_TORCH_TRAINING_GLOO_GROUP_H_
#define SLUICE_WORKER_TORCH_TRAINING_GLOO_GROUP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/torch/training/gradient_group.h"

namespace sluice {

// Every rank of a launch by mpirun or srun calls this once. MPI tells where rank 0 is; all other
// traffic is gloo's. INVALID_ARGUMENT without a launch, UNIMPLEMENTED if this program was built
// without gloo's headers (Debian's libgloo-dev), UNAVAILABLE if the ranks do not find each other.
absl::StatusOr<std::unique_ptr<GradientGroup>> JoinGlooGroup();

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_GLOO_GROUP_H_
