// The half of LAMB that needs norms of whole tensors (You et al. 2020, "Large Batch Optimization
// for Deep Learning: Training BERT in 76 minutes", algorithm 2). lamb_optimizer.cc is the other
// half.
//
// With u the update that the other half makes, and norms over one range of the layout:
//   p ← p − learning_rate · (‖p‖ / ‖u‖) · u, where the ratio is 1 if either norm is 0
// A norm is a sum over the range's part in each unit of the vector (stripes.h), added in order. So
// neither the number of threads nor the number of stripes changes a bit. Updates are not stored:
// they are made once for the norms, and once more for the step. StripeExecutor measures and applies
// its stripe; StepDirector computes the rates from what all stripes measured. Nothing here fails.

#ifndef SLUICE_SERVER_OPTIMIZERS_TRUST_RATIOS_H_
#define SLUICE_SERVER_OPTIMIZERS_TRUST_RATIOS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/tensor/stripes.h"
#include "server/optimizers/group_runs.h"

namespace sluice {

// Sums of squares over the part of one range in one unit.
struct TrustSquares {
  double current = 0;
  double update = 0;
};

// By what the updates of each range are multiplied: learning rate times ratio.
struct TrustRates {
  std::vector<float> rates;
  // Whether they and the norms are so small that every next parameter is finite.
  bool sure = false;
};

// `ranges` are those of the whole vector. `measured` has what Measure() returned for each stripe.
// `learning_rates` has one entry for each group, as in OptimizerStep.
TrustRates ComputeTrustRates(const std::vector<GroupRun>& ranges, const Stripes& stripes,
                             const std::vector<double>& learning_rates,
                             const std::vector<std::vector<TrustSquares>>& measured);

// Externally synchronized, except for Apply().
class TrustRatios {
 public:
  // `ranges` are those that RangeRuns() returns for the stripe's layout, `unit` is
  // Stripes::unit().
  TrustRatios(std::vector<GroupRun> ranges, uint64_t unit);

  // Writes the updates of the elements from `begin` on to `update`.
  using MakeUpdate = absl::FunctionRef<void(uint64_t begin, absl::Span<float> update)>;

  // Returns the squares of all parts, in order. Several threads call make(), for elements of one
  // range at a time, each once.
  std::vector<TrustSquares> Measure(absl::Span<const float> current, Parallel& parallel,
                                    MakeUpdate make) const;

  // Sets the rate of each range.
  void SetRates(std::vector<float> rates) { rates_ = std::move(rates); }

  // Replaces the updates `next`, of the elements from `begin` on, by the next parameters. Leaves
  // statistics unchanged. `current` is the whole stripe. Any number of threads may call it.
  void Apply(uint64_t begin, absl::Span<const float> current, absl::Span<float> next) const;

 private:
  struct Part {
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  const std::vector<GroupRun> ranges_;
  std::vector<Part> parts_;   // of all parameters, in order
  std::vector<float> rates_;  // of each range
};

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_TRUST_RATIOS_H_
