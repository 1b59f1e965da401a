// Decides all numbers of a step that depend on the whole vector or on its gradients' headers: the
// weight of each gradient, the divisors, the clipping, learning rates and momentum, LAMB's ratios.
// It holds no vector. The stripes of the vector (StripeExecutor) do the arithmetic by its orders,
// and report what they measure; step_orders.h has both. What it decides has the same bits with any
// number of stripes.
//
// One thread at a time calls it.

#ifndef SLUICE_SERVER_AGGREGATION_STEP_DIRECTOR_H_
#define SLUICE_SERVER_AGGREGATION_STEP_DIRECTOR_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "common/tensor/stripes.h"
#include "server/aggregation/accumulator.h"
#include "server/aggregation/gradient_ages.h"
#include "server/aggregation/parameter_sample.h"
#include "server/aggregation/step_norms.h"
#include "server/aggregation/step_orders.h"
#include "server/optimizers/group_runs.h"
#include "server/policy/step_terms.h"

namespace sluice {

// Externally synchronized.
class StepDirector {
 public:
  // `layout` is that of the whole vector. `optimizer` is valid and fits it.
  StepDirector(const Layout& layout, const OptimizerConfig& optimizer, const Stripes& stripes);

  // Counts a gradient of the coming step. Returns the weight with which all stripes add it.
  GradientWeight Count(uint32_t samples, uint64_t staleness, const StepTerms& terms);
  // Counts the gradients whose sum the journal has.
  void Load(uint32_t gradients, uint64_t samples);

  // Returns the first order of the step that the counted gradients make.
  StepOrder Begin(const StepTerms& terms);
  // Takes the reports on the latest order, one for each stripe, and returns the next order, or
  // nothing if the step has ended. Then bad() says whether it was made.
  absl::optional<StepOrder> Next(const std::vector<StripeReport>& reports);

  // Absent if the latest step was made. Otherwise the first element of the vector whose parameter,
  // or whose state in the optimizer, would not be finite.
  const absl::optional<uint64_t>& bad() const { return bad_; }
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
  struct Divisors {
    float parameters = 1;
    float statistics = 1;
  };

  StepOrder Give(StepOrder::Kind kind);
  StepOrder Start();
  StepOrder Prepare(float divisor);
  StepOrder Scale(const std::vector<StripeReport>& reports);
  absl::optional<StepOrder> End();
  Divisors ReductionDivisors() const;
  float Clipped(const std::vector<StripeReport>& reports) const;
  double SumNorm(const std::vector<StripeReport>& reports) const;
  void TakeSample(const std::vector<StripeReport>& reports);

  const Stripes stripes_;
  const bool scales_;                   // LAMB
  const std::vector<GroupRun> ranges_;  // of the whole vector
  const ParameterSample sampled_;
  GradientAges ages_;
  std::vector<float> sample_;  // of the newest parameters
  bool has_sample_ = false;
  StepNorms norms_;
  StepTerms terms_;
  StepOrder order_;  // the latest
  absl::optional<uint64_t> bad_;
  uint32_t count_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_STEP_DIRECTOR_H_
