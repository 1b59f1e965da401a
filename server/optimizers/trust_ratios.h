// The half of LAMB that needs norms of whole tensors (You et al. 2020, "Large Batch Optimization
// for Deep Learning: Training BERT in 76 minutes", algorithm 2). lamb_optimizer.cc is the other
// half.
//
// With u the update that the other half makes, and norms over one range of the layout:
//   p ← p − learning_rate · (‖p‖ / ‖u‖) · u, where the ratio is 1 if either norm is 0
// A norm is a sum of fixed parts, added in a fixed order, so that the number of threads changes no
// bit. Updates are not stored: they are made once for the norms, and once more for the step.
// StepExecutor owns a TrustRatios if the job's optimizer is LAMB. Nothing here fails.

#ifndef SLUICE_SERVER_OPTIMIZERS_TRUST_RATIOS_H_
#define SLUICE_SERVER_OPTIMIZERS_TRUST_RATIOS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "server/optimizers/group_runs.h"

namespace sluice {

// Externally synchronized, except for Apply().
class TrustRatios {
 public:
  // `ranges` are what RangeRuns() returns for the layout.
  explicit TrustRatios(std::vector<GroupRun> ranges);

  // Writes the updates of the elements from `begin` on to `update`.
  using MakeUpdate = absl::FunctionRef<void(uint64_t begin, absl::Span<float> update)>;

  // Computes each range's ratio and, from its group's learning rate, the factor of its update.
  // Several threads call make(), for elements of one range at a time, each once. `learning_rates`
  // has one entry for each group, as in OptimizerStep.
  void Measure(absl::Span<const float> current, const std::vector<double>& learning_rates,
               Parallel& parallel, MakeUpdate make);

  // After Measure(): whether the norms and the factors are so small that every next parameter is
  // finite.
  bool sure() const { return sure_; }

  // Replaces the updates `next`, of the elements from `begin` on, by the next parameters. Leaves
  // statistics unchanged. `current` is the whole vector. Any number of threads may call it.
  void Apply(uint64_t begin, absl::Span<const float> current, absl::Span<float> next) const;

 private:
  // A part whose squares one thread sums up.
  struct Part {
    size_t range = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    double current = 0;  // sums of squares
    double update = 0;
  };

  static void MeasurePart(absl::Span<const float> current, MakeUpdate make, Part& part);

  const std::vector<GroupRun> ranges_;
  std::vector<Part> parts_;   // all parameters, in order
  std::vector<float> rates_;  // for each range: learning rate times ratio
  bool sure_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_TRUST_RATIOS_H_
