// The arithmetic of a step: it accumulates gradients, reduces the sum, clips it, and calls the
// optimizer. It owns the accumulator and the optimizer.
//
// One thread at a time calls it, without the shard's mutex: the thread that Shard::Advance() runs
// on. Large vectors are cut into parts that several threads work on. The number of threads never
// changes a bit of the result.
//
// A step that would make a parameter, a statistic or a number of the optimizer NaN or infinite is
// not made: Make() returns where, and the optimizer's state, which a step updates in place, stays
// as it was. Bounds tell beforehand that nearly all steps are finite (StepBounds). Others are tried
// first: all numbers are made, checked and thrown away, block by block in the first-level cache.
// Without slots, new parameters are checked where they are made. LAMB's pass for norms is its try.

#ifndef SLUICE_SERVER_AGGREGATION_STEP_EXECUTOR_H_
#define SLUICE_SERVER_AGGREGATION_STEP_EXECUTOR_H_

#include <atomic>
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
#include "server/aggregation/parameter_history.h"
#include "server/aggregation/parameter_norms.h"
#include "server/aggregation/pending_push.h"
#include "server/aggregation/step_bounds.h"
#include "server/optimizers/group_runs.h"
#include "server/optimizers/optimizer.h"
#include "server/optimizers/trust_ratios.h"
#include "server/policy/step_terms.h"

namespace sluice {

// Called on the thread that called Make(), when elements [0, end) of the next parameters are
// written.
using WriteProgress = std::function<void(uint64_t end)>;

// Externally synchronized.
class StepExecutor {
 public:
  // `optimizer` is valid and fits the layout. `parallel` outlives it.
  StepExecutor(const Layout& layout, const OptimizerConfig& optimizer, Parallel& parallel);

  // Accumulates a contribution, with the weight that the terms of its step give it.
  void Add(const Contribution& contribution, const StepTerms& terms);

  // Computes the parameters `next` from `current` and the accumulated sum. `last`, if not null, is
  // one more contribution, which is added in the same pass over memory. `current` is finite: any
  // parameters before the first step, then equal to what the latest step made. The optimizer
  // updates PARAMETER ranges; clipping follows the formula of torch::nn::utils::clip_grad_norm_.
  // STATISTIC ranges become the mean of the pushed values. If nothing was accumulated, `next`
  // becomes a copy of `current`.
  //
  // Returns nothing if the step was made. Otherwise returns the index of the first element whose
  // parameter, or whose state in the optimizer, would not be finite. The optimizer's state is then
  // unchanged, and `next` is undefined. `progress` is not called after such an element was found.
  //
  // The rules for stale gradients use how far the parameters have moved, and how often momentum has
  // decayed, since a gradient was computed; both are taken from the steps that this object made.
  // The rule gap_aware divides a gradient of SGD by its gap. The steps of other optimizers hardly
  // depend on the size of a gradient, so the rule divides their learning rate. terms() has what was
  // decided.
  //
  // `checksum`, if not null, gets the checksum of what was made: the parameters and the optimizer's
  // slots. It is 0 if nothing was accumulated or the step was not made.
  absl::optional<uint64_t> Make(const StepTerms& terms, const Contribution* last,
                                absl::Span<const float> current, absl::Span<float> next,
                                const WriteProgress& progress = nullptr,
                                uint64_t* checksum = nullptr);

  // The terms of the step that Make() made last, complete: a step that is made again with them has
  // the same bits.
  const StepTerms& terms() const { return terms_; }

  // How that step changed the size of the parameters.
  const StepNorms& norms() const { return norms_.latest(); }

  // Empties the sum. Call it after Make(), when the sum is not needed any more.
  void Clear();

  // The gradients accumulated since Clear(): their number, their samples, and their sum, which is
  // empty if there are none. The span stays valid until the next Add() or Load().
  uint32_t gradients() const { return count_; }
  uint64_t samples() const { return samples_; }
  absl::Span<const float> sum() const {
    return count_ == 0 ? absl::Span<const float>() : accumulator_.sum();
  }
  // Replaces them by those of a journaled step.
  void Load(uint32_t gradients, uint64_t samples, absl::Span<const float> sum);

  // The optimizer's state, for checkpoints: its slots and the number of steps that it has made.
  std::vector<OptimizerSlot> slots() { return optimizer_->slots(); }
  uint64_t optimizer_steps() const { return optimizer_steps_; }
  // Call it also when the slots were written.
  void set_optimizer_steps(uint64_t steps) {
    optimizer_steps_ = steps;
    bounds_.ForgetSlots();
    if (steps > 0) since_decay_ = UINT32_MAX / 2;  // the next step decays what was restored
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;

  struct Divisors {
    float parameters = 1;
    float statistics = 1;
  };

  enum class Pass { kTry, kMake };

  // The values that all parts of one step share. Several threads call Note().
  struct Making {
    // Keeps the lowest index.
    void Note(absl::optional<uint64_t> index);
    // Notes the first of `made`, the elements from `begin` on, that is not finite.
    void Check(uint64_t begin, absl::Span<const float> made);

    std::atomic<uint64_t> bad{kNone};  // the first element that is not finite
    absl::optional<Addend> last;       // not in the accumulator
    float statistics_divisor = 1;
    std::vector<double> learning_rates;
    absl::Span<const float> current;
    absl::Span<float> next;
    std::vector<OptimizerSlot> slots;
    absl::Span<uint64_t> checksums;  // one for each part; empty: none are wanted
  };

  // Counts a contribution and returns it with its weight.
  Addend Count(const Contribution& contribution, const StepTerms& terms);
  // Completes terms_ from the ages of the contributions.
  void DecideTerms();
  void NoteDecay();
  // Make(), except that it does not keep the history and the norms.
  absl::optional<uint64_t> MakeStep(const StepTerms& terms, const Contribution* last,
                                    absl::Span<const float> current, absl::Span<float> next,
                                    const WriteProgress& progress, uint64_t* checksum);
  Divisors DivisorsOf(Reduction reduction) const;
  float Clipped(float divisor, const absl::optional<double>& clip_norm) const;
  double Norm() const;
  // Notes the first element that would not be finite. Does nothing if none can be.
  void Foresee(Making& making);
  // Calls part(begin, end) for each part of the vector, on several threads.
  void ForEachPartOf(const Making& making, const WriteProgress& progress,
                     absl::FunctionRef<void(uint64_t begin, uint64_t end)> part);
  void TryPart(Making& making, uint64_t begin, uint64_t end);
  void MakePart(Making& making, uint64_t begin, uint64_t end);
  // Makes the elements from `begin` on, at most kPiece; LAMB's updates in place of parameters.
  void MakePiece(Making& making, uint64_t begin, Pass pass, absl::Span<float> made);

  const std::vector<KindRun> runs_;
  const std::vector<GroupRun> group_runs_;
  Parallel& parallel_;
  Accumulator accumulator_;
  const std::unique_ptr<Optimizer> optimizer_;
  StepBounds bounds_;
  absl::optional<TrustRatios> trust_;  // only for LAMB: scales the optimizer's updates
  const bool sgd_;                     // its steps are proportional to the gradients
  StepTerms terms_;
  ParameterNorms norms_;
  ParameterHistory history_;  // empty unless a rule needs it
  uint64_t decays_ = 0;       // of ordered momentum
  uint32_t since_decay_ = 0;  // contributions
  double gap_shares_ = 0;     // 1 / gap, summed over the contributions to the step
  double lateness_ = 0;       // likewise
  uint32_t count_ = 0;        // contributions to the step
  uint64_t samples_ = 0;      // of these contributions
  uint64_t optimizer_steps_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STEP_EXECUTOR_H_
