// The arithmetic of a step: gradients are added up, reduced, clipped, and given to the optimizer.
//
// To be used by one thread at a time, which is never one that holds the shard's mutex. Large
// vectors are worked on in parts, by as many threads as there are; that never changes a bit.

#ifndef SLUICE_SERVER_AGGREGATION_STEP_EXECUTOR_H_
#define SLUICE_SERVER_AGGREGATION_STEP_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "server/aggregation/accumulator.h"
#include "server/aggregation/contributions.h"
#include "server/aggregation/pending_push.h"
#include "server/optimizers/group_runs.h"
#include "server/optimizers/optimizer.h"
#include "server/optimizers/trust_ratios.h"

namespace sluice {

// Told that elements [0, end) of the next parameters are written.
using WriteProgress = std::function<void(uint64_t end)>;

// Externally synchronized.
class StepExecutor {
 public:
  // `optimizer` is valid and fits the layout. `clip_norm` bounds the Euclidean norm of the reduced
  // gradient, over all PARAMETER ranges, by the formula of torch::nn::utils::clip_grad_norm_.
  // `parallel` outlives it.
  StepExecutor(const Layout& layout, const OptimizerConfig& optimizer,
               absl::optional<double> clip_norm, Parallel& parallel);

  // Adds a contribution to the step, weighted as `consistency` says.
  void Add(const Contribution& contribution, const Consistency& consistency);

  // Makes `next` of `current`, what was added, and `last`, if any; all that is then forgotten. If
  // there was nothing, they are equal. PARAMETER ranges go through the optimizer, with a learning
  // rate for each group, as RuntimeSettings tells them; STATISTIC ranges become the mean of what
  // was pushed. `last` is added on the way, in the same pass over memory.
  void Make(const Consistency& consistency, const std::vector<double>& learning_rates,
            const Contribution* last, absl::Span<const float> current, absl::Span<float> next,
            const WriteProgress& progress = nullptr);

  // What was added since the last step: how many gradients, of how many samples, and their sum,
  // empty if there are none.
  uint32_t gradients() const { return count_; }
  uint64_t samples() const { return samples_; }
  absl::Span<const float> sum() const {
    return count_ == 0 ? absl::Span<const float>() : accumulator_.sum();
  }
  // As if these had been added.
  void Load(uint32_t gradients, uint64_t samples, absl::Span<const float> sum);

  // What goes on where the optimizer's life does: its slots, and the steps it has made.
  std::vector<OptimizerSlot> slots() { return optimizer_->slots(); }
  uint64_t optimizer_steps() const { return optimizer_steps_; }
  void set_optimizer_steps(uint64_t steps) { optimizer_steps_ = steps; }

 private:
  struct Divisors {
    float parameters = 1;
    float statistics = 1;
  };

  // All that the parts of one step have in common.
  struct Making {
    absl::optional<Addend> last;  // not in the accumulator yet
    float statistics_divisor = 1;
    absl::Span<const float> current;
    absl::Span<float> next;
  };

  // Notes a contribution to the step.
  Addend Count(const Contribution& contribution, const Consistency& consistency);
  Divisors DivisorsOf(Reduction reduction) const;
  float Clipped(float divisor) const;
  double Norm() const;
  // Calls part(begin, end) for the parts of the vector, by several threads at once.
  void ForEachPartOf(uint64_t size, const WriteProgress& progress,
                     absl::FunctionRef<void(uint64_t begin, uint64_t end)> part);
  void MakePart(const Making& making, uint64_t begin, uint64_t end);
  void MakePiece(const Making& making, uint64_t begin, absl::Span<const float> sum,
                 absl::Span<float> next);

  const std::vector<KindRun> runs_;
  const std::vector<GroupRun> group_runs_;
  const absl::optional<double> clip_norm_;
  Parallel& parallel_;
  Accumulator accumulator_;
  const std::unique_ptr<Optimizer> optimizer_;
  absl::optional<TrustRatios> trust_;  // of LAMB: what makes steps of the optimizer's updates
  uint32_t count_ = 0;                 // contributions to the step
  uint64_t samples_ = 0;               // theirs
  uint64_t optimizer_steps_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STEP_EXECUTOR_H_
