// Decides all numbers of a step that depend on the whole vector or on its gradients' headers: the
// weight of each gradient, the divisors, the clipping, learning rates and momentum, LAMB's ratios.
// It holds no vector. The stripes of the vector (StripeExecutor) do the arithmetic by its orders,
// and report what they measure; step_orders.h has both. What it decides has the same bits with any
// number of stripes.
//
// One thread at a time calls it.

#ifndef SLUICE_SERVER_AGGREGATION_STEP_DIRECTOR_H_
#define SLUICE_SERVER_AGGREGATION_STEP_DIRECTOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_config.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/layout.h"
#include "common/tensor/running_means.h"
#include "common/tensor/stripes.h"
#include "server/aggregation/accumulator.h"
#include "server/aggregation/gradient_ages.h"
#include "server/aggregation/parameter_sample.h"
#include "server/aggregation/step_norms.h"
#include "server/aggregation/step_orders.h"
#include "server/optimizers/group_runs.h"
#include "server/policy/step_terms.h"

namespace sluice {

// Carries out an order on all stripes of the vector, and returns their reports in order; none if
// that is not possible any more.
using CarryOrder = absl::FunctionRef<std::vector<StripeReport>(const StepOrder&)>;

// Externally synchronized.
class StepDirector {
 public:
  // `layout` is that of the whole vector. `optimizer` is valid and fits it.
  StepDirector(const Layout& layout, const OptimizerConfig& optimizer, const Stripes& stripes);

  // Counts a gradient of the coming step. Returns the weight with which all stripes add it.
  GradientWeight Count(const PushHeader& header, uint64_t staleness, const StepTerms& terms);
  // Counts the gradients whose sum the journal has.
  void Load(uint32_t gradients, uint64_t samples);

  // Makes a step of the counted gradients: gives its orders to `carry`, one after the other. The
  // optimizer updates PARAMETER ranges; clipping follows torch::nn::utils::clip_grad_norm_.
  // STATISTIC ranges become the mean of the pushed values, or go on as running means. Without
  // gradients the next parameters are a copy of the current ones.
  //
  // Returns nothing if the step was made, or if `carry` did not carry out an order. Otherwise it
  // was abandoned: the next parameters are a copy, the optimizer's state is unchanged, and the
  // first element of the vector is returned whose parameter, or whose state in the optimizer, would
  // not be finite; without one, the first such row of a table.
  absl::optional<BadNumber> Make(const StepTerms& terms, CarryOrder carry);

  // Between two steps: zlib's CRC-32 of the bytes of all parameters. Absent if `carry` did not
  // carry out its order.
  absl::optional<uint32_t> Digest(CarryOrder carry) const;

  // The terms of that step, complete: a step that is made again with them has the same bits.
  const StepTerms& terms() const { return terms_; }
  const StepNorms& norms() const { return norms_; }

  // The gradients that were counted since Clear(), and their samples.
  uint32_t gradients() const { return count_; }
  uint64_t samples() const { return samples_; }
  void Clear();

  // The optimizer's slots were restored.
  void NoteRestored() { ages_.NoteRestored(); }

 private:
  // The first order of a step, and the next one after these reports on the latest; nothing if the
  // step has ended.
  StepOrder Begin(const StepTerms& terms);
  absl::optional<StepOrder> Next(const std::vector<StripeReport>& reports);

  struct Divisors {
    float parameters = 1;
    float statistics = 1;
  };

  StepOrder Give(StepOrder::Kind kind);
  StepOrder Start();
  StepOrder Prepare(float divisor);
  StepOrder Scale(const std::vector<StripeReport>& reports);
  Divisors ReductionDivisors() const;
  float Clipped(const std::vector<StripeReport>& reports) const;
  double SumNorm(const std::vector<StripeReport>& reports) const;
  double SquaresOfRows(const std::vector<StripeReport>& reports) const;
  absl::optional<float> RowScale(float divisor) const;
  void TakeSample(const std::vector<StripeReport>& reports);

  const Stripes stripes_;
  const size_t tables_;                 // how many the layout has
  const bool scales_;                   // LAMB
  const std::vector<GroupRun> ranges_;  // of the whole vector
  const ParameterSample sampled_;
  GradientAges ages_;
  std::vector<float> sample_;  // of the newest parameters
  bool has_sample_ = false;
  MeanOfRunningMeans running_means_;
  StepNorms norms_;
  StepTerms terms_;
  StepOrder order_;  // the latest
  absl::optional<BadNumber> bad_;
  uint32_t count_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STEP_DIRECTOR_H_
