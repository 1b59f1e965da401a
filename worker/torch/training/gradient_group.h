// Ranks that average their gradients with each other, without a server. It is what a parameter
// server is compared with.

#ifndef SLUICE_WORKER_TORCH_TRAINING_GRADIENT_GROUP_H_
#define SLUICE_WORKER_TORCH_TRAINING_GRADIENT_GROUP_H_

#include <torch/nn/module.h>
#include <torch/types.h>

#include "common/launch/mpi_bootstrap.h"

namespace sluice {

// All ranks call the same functions in the same order. Every function throws c10::Error or
// std::exception if a rank is gone. Used by one thread.
class GradientGroup {
 public:
  virtual ~GradientGroup() = default;

  const MpiWorld& world() const { return world_; }

  // Gives all ranks the parameters and the floating-point buffers of rank 0.
  void Equalize(torch::nn::Module& module);

  // Replaces the gradients and the floating-point buffers by their means over all ranks.
  void Average(torch::nn::Module& module);

  // Replaces `values`, contiguous floats of which all ranks have as many, by their sums over all
  // ranks.
  virtual void Sum(torch::Tensor& values) = 0;

  // Waits for all ranks.
  virtual void Barrier() = 0;

 protected:
  explicit GradientGroup(MpiWorld world) : world_(world) {}

 private:
  // Replaces `values` by those of rank 0.
  virtual void Broadcast(torch::Tensor& values) = 0;

  const MpiWorld world_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_GRADIENT_GROUP_H_
