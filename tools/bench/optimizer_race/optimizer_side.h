// One side of the race of optimizers: Sluice's or LibTorch's, whose steps are timed.

#ifndef SLUICE_TOOLS_BENCH_OPTIMIZER_RACE_OPTIMIZER_SIDE_H_
#define SLUICE_TOOLS_BENCH_OPTIMIZER_RACE_OPTIMIZER_SIDE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/protocol/optimizer_options.h"

namespace sluice::bench {

// To be used by one thread. All steps have the same gradient; the parameters begin as zeros.
class OptimizerSide {
 public:
  virtual ~OptimizerSide() = default;

  virtual void Step() = 0;

  // All of them, one tensor after the other.
  virtual std::vector<float> Parameters() const = 0;
};

// The server's arithmetic of a step with one gradient: from where it was received to the next
// snapshot. `tensors` are their elements, `threads` at least 1.
std::unique_ptr<OptimizerSide> MakeSluiceSide(const OptimizerOptions& options,
                                              const std::vector<uint64_t>& tensors,
                                              absl::Span<const float> gradient, uint32_t threads);

// torch::optim's step; null if it lacks the optimizer. Sets LibTorch's threads.
std::unique_ptr<OptimizerSide> MakeTorchSide(const OptimizerOptions& options,
                                             const std::vector<uint64_t>& tensors,
                                             absl::Span<const float> gradient, uint32_t threads);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_OPTIMIZER_RACE_OPTIMIZER_SIDE_H_
