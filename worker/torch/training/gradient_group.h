// The ranks of a launch that average their gradients with each other, without a server: allreduce
// by gloo (torch::distributed), in rings. It is what a parameter server is compared with.

#ifndef SLUICE_WORKER_TORCH_TRAINING_GRADIENT_GROUP_H_
#define SLUICE_WORKER_TORCH_TRAINING_GRADIENT_GROUP_H_

#include <torch/nn/module.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/launch/mpi_bootstrap.h"

namespace sluice {

// Used by one thread.
class GradientGroup {
 public:
  // Every rank of a launch by mpirun or srun calls this once. MPI tells where rank 0 is; all other
  // traffic is gloo's. INVALID_ARGUMENT without a launch, UNIMPLEMENTED if this program was built
  // without gloo's headers (Debian's libgloo-dev), UNAVAILABLE if the ranks do not find each other.
  static absl::StatusOr<std::unique_ptr<GradientGroup>> Join();

  virtual ~GradientGroup() = default;

  const MpiWorld& world() const { return world_; }

  // Gives all ranks the parameters and buffers of rank 0.
  virtual void Equalize(torch::nn::Module& module) = 0;

  // Replaces the gradients, and the floating-point buffers, by their means over all ranks. Throws
  // c10::Error or std::exception if a rank is gone.
  virtual void Average(torch::nn::Module& module) = 0;

  // Waits for all ranks.
  virtual void Barrier() = 0;

 protected:
  explicit GradientGroup(MpiWorld world) : world_(world) {}

 private:
  const MpiWorld world_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_GRADIENT_GROUP_H_
