// One side of the race of optimizers: Sluice's or LibTorch's. optimizers_main times its steps.

#ifndef SLUICE_TOOLS_BENCH_OPTIMIZER_RACE_OPTIMIZER_SIDE_H_
#define SLUICE_TOOLS_BENCH_OPTIMIZER_RACE_OPTIMIZER_SIDE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/protocol/optimizer_options.h"

namespace sluice::bench {

// Used by one thread. All steps have the same gradient; the parameters start as zeros.
class OptimizerSide {
 public:
  virtual ~OptimizerSide() = default;

  virtual void Step() = 0;

  // Returns all parameters, one tensor after the other.
  virtual std::vector<float> Parameters() const = 0;
};

// Makes the server's side: a step computes the next snapshot from one received gradient. `tensors`
// holds the number of elements of each tensor; `threads` is at least 1.
std::unique_ptr<OptimizerSide> MakeSluiceSide(const OptimizerOptions& options,
                                              const std::vector<uint64_t>& tensors,
                                              absl::Span<const float> gradient, uint32_t threads);

// Makes torch::optim's side, or returns null if torch::optim lacks the optimizer. Sets the number
// of LibTorch's threads.
std::unique_ptr<OptimizerSide> MakeTorchSide(const OptimizerOptions& options,
                                             const std::vector<uint64_t>& tensors,
                                             absl::Span<const float> gradient, uint32_t threads);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_OPTIMIZER_RACE_OPTIMIZER_SIDE_H_
