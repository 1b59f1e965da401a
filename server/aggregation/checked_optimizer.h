// Applies the job's optimizer to a stripe of the parameters, on several threads, and only if every
// number that comes out is finite.
//
// A step that would make a parameter, a statistic or a number of the optimizer NaN or infinite is
// not made, and the optimizer's state, which a step updates in place, stays as it was. Bounds tell
// beforehand that nearly all steps are finite (StepBounds). Others are tried first: all numbers are
// made, checked and thrown away, block by block in the first-level cache. With LAMB, the pass that
// measures the norms is the try. An optimizer of the program makes its whole step beforehand, in
// memory of its own.
//
// StripeExecutor owns one. Large vectors are cut into fixed parts that several threads work on, so
// the number of threads never changes a bit of the result.

#ifndef SLUICE_SERVER_AGGREGATION_CHECKED_OPTIMIZER_H_
#define SLUICE_SERVER_AGGREGATION_CHECKED_OPTIMIZER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "common/tensor/running_means.h"
#include "server/aggregation/accumulator.h"
#include "server/aggregation/step_bounds.h"
#include "server/optimizers/group_runs.h"
#include "server/optimizers/optimizer.h"
#include "server/optimizers/trust_ratios.h"
#include "server/optimizers/whole_optimizer.h"

namespace sluice {

// Called on the thread that makes the step, when elements [0, end) of the next parameters are
// written.
using WriteProgress = std::function<void(uint64_t end)>;

// The gradient of one step, and the vectors from which and to which the step goes.
struct VectorStep {
  absl::optional<Addend> last;   // one more gradient, which is not in the sum yet
  OptimizerStep optimizer;       // its number is set by CheckedOptimizer
  float statistics_divisor = 1;  // the mean of a pushed statistic is sum / statistics_divisor
  RunningMeans running_means;    // statistics that keep a part of their current value
  absl::Span<const float> current;
  absl::Span<float> next;  // may be where the sum lies
};

// Externally synchronized. Indexes count the elements of the stripe.
class CheckedOptimizer {
 public:
  // `layout` is that of the stripe, `unit` is Stripes::unit(). `config` is valid and fits the
  // layout. `program` makes the steps of ProgramOptions, and is null for others. `sum` and
  // `parallel` outlive it.
  CheckedOptimizer(const Layout& layout, uint64_t unit, const OptimizerConfig& config,
                   Accumulator& sum, Parallel& parallel,
                   std::unique_ptr<ProgramOptimizer> program = nullptr);

  // Begins a step. One that was not made is forgotten.
  void Begin(VectorStep step);

  // LAMB has two more calls before Foresee(): the first measures the updates, the second takes what
  // was computed from them.
  bool scales() const { return trust_.has_value(); }
  std::vector<TrustSquares> MeasureUpdates();
  void SetRates(TrustRates rates);

  // Returns the index of the first element that would not be finite, which MeasureUpdates() may
  // have found already, or nothing. It may move the step's last gradient into the sum.
  absl::optional<uint64_t> Foresee();
  absl::optional<uint64_t> bad() const;
  // Why the program's optimizer has not made the step; then bad() is 0. OK if it has, or if there
  // is none.
  const absl::Status& failure() const { return failure_; }

  // Makes the next parameters, and updates the slots, if bad() is absent. The optimizer updates
  // PARAMETER ranges; STATISTIC ranges become the mean of the pushed values, or go on as running
  // means. `checksum`, if not null, gets the checksum of what was made: the parameters and the
  // slots.
  void Make(const WriteProgress& progress, uint64_t* checksum);

  // The optimizer's state, for checkpoints: its slots and the number of steps that it has made.
  std::vector<OptimizerSlot> slots() { return optimizer_->slots(); }
  uint64_t steps() const { return steps_; }
  // Call it also when the slots were written.
  void set_steps(uint64_t steps) {
    steps_ = steps;
    bounds_.ForgetSlots();
  }

 private:
  enum class Pass { kTry, kMake };

  bool IsSure() const;
  double LargestKept() const;
  void AddLastIfForeign();
  // Makes the step of the program's optimizer, in its own memory.
  void StepWhole();
  // Calls part(begin, end) for each part of the vector, on several threads.
  void ForEachPartOf(const WriteProgress& progress,
                     absl::FunctionRef<void(uint64_t begin, uint64_t end)> part);
  void TryPart(uint64_t begin, uint64_t end);
  void MakePart(uint64_t begin, uint64_t end, absl::Span<uint64_t> checksums);
  // Makes the elements from `begin` on, at most kPiece; LAMB's updates in place of parameters.
  void MakePiece(uint64_t begin, Pass pass, absl::Span<float> made);
  // Note that this element, or the first of `made`, the elements from `begin` on, that is not
  // finite, is bad. Several threads may call them.
  void Note(absl::optional<uint64_t> index);
  void Check(uint64_t begin, absl::Span<const float> made);

  const std::vector<GroupRun> group_runs_;
  Parallel& parallel_;
  Accumulator& sum_;
  std::unique_ptr<Optimizer> optimizer_;
  WholeOptimizer* whole_ = nullptr;  // optimizer_, if it is the program's
  StepBounds bounds_;
  absl::optional<TrustRatios> trust_;  // only for LAMB: scales the optimizer's updates
  uint64_t steps_ = 0;
  // The step.
  VectorStep step_;
  bool rates_are_sure_ = true;  // of LAMB
  std::atomic<uint64_t> bad_;   // the first element that is not finite; kNone
  absl::Status failure_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_CHECKED_OPTIMIZER_H_
