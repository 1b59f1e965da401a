// The half of LAMB that looks at whole tensors (You et al. 2020, algorithm 2). With u the update
// that LambOptimizer writes, and norms over one range of the layout:
//   p ← p − learning_rate · (‖p‖ / ‖u‖) · u, where the ratio is 1 if either norm is 0
// Norms are sums of fixed parts, added in a fixed order, so that the number of threads changes no
// bit.

#ifndef SLUICE_SERVER_OPTIMIZERS_TRUST_RATIOS_H_
#define SLUICE_SERVER_OPTIMIZERS_TRUST_RATIOS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "server/optimizers/group_runs.h"

namespace sluice {

// Externally synchronized, but for Apply().
class TrustRatios {
 public:
  // `ranges` are RangeRuns() of the layout.
  explicit TrustRatios(std::vector<GroupRun> ranges);

  // Finds each range's ratio and, with its group's learning rate, how much of its update to take.
  void Measure(absl::Span<const float> current, absl::Span<const float> update,
               const std::vector<double>& learning_rates, Parallel& parallel);

  // Makes the next parameters of the updates in elements [begin, end) of `next`; statistics stay as
  // they are. Several threads may do so at once, each with elements of its own.
  void Apply(uint64_t begin, uint64_t end, absl::Span<const float> current,
             absl::Span<float> next) const;

 private:
  // What one thread sums up.
  struct Part {
    size_t range = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    double current = 0;  // sums of squares
    double update = 0;
  };

  const std::vector<GroupRun> ranges_;
  std::vector<Part> parts_;   // of all parameters, in their order
  std::vector<float> rates_;  // of each range: learning rate times ratio
};

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_TRUST_RATIOS_H_
