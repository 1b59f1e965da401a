// The half of LAMB that needs norms of whole tensors (You et al. 2020, "Large Batch Optimization
// for Deep Learning: Training BERT in 76 minutes", algorithm 2). lamb_optimizer.cc is the other
// half.
//
// With u the update that the other half writes, and norms over one range of the layout:
//   p ← p − learning_rate · (‖p‖ / ‖u‖) · u, where the ratio is 1 if either norm is 0
// A norm is a sum of fixed parts, added in a fixed order, so that the number of threads changes no
// bit. StepExecutor owns a TrustRatios if the job's optimizer is LAMB. Nothing here fails.

#ifndef SLUICE_SERVER_OPTIMIZERS_TRUST_RATIOS_H_
#define SLUICE_SERVER_OPTIMIZERS_TRUST_RATIOS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "server/optimizers/group_runs.h"

namespace sluice {

// Externally synchronized, except for Apply().
class TrustRatios {
 public:
  // `ranges` are what RangeRuns() returns for the layout.
  explicit TrustRatios(std::vector<GroupRun> ranges);

  // Computes each range's ratio and, from its group's learning rate, the factor of its update.
  // `learning_rates` has one entry for each group, as in OptimizerStep.
  void Measure(absl::Span<const float> current, absl::Span<const float> update,
               const std::vector<double>& learning_rates, Parallel& parallel);

  // Replaces the updates in elements [begin, end) of `next` by the next parameters. Leaves
  // statistics unchanged. Several threads may call it at once with elements that do not overlap.
  void Apply(uint64_t begin, uint64_t end, absl::Span<const float> current,
             absl::Span<float> next) const;

 private:
  // A part whose squares one thread sums up.
  struct Part {
    size_t range = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    double current = 0;  // sums of squares
    double update = 0;
  };

  const std::vector<GroupRun> ranges_;
  std::vector<Part> parts_;   // all parameters, in order
  std::vector<float> rates_;  // for each range: learning rate times ratio
};

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_TRUST_RATIOS_H_
