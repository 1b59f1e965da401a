// The running means of a model as they were pulled, so that a push can say what its batches have
// added to them (common/tensor/running_means.h). A ParameterClient owns one.

#ifndef SLUICE_WORKER_CLIENT_PULLED_MEANS_H_
#define SLUICE_WORKER_CLIENT_PULLED_MEANS_H_

#include <vector>

#include "absl/types/span.h"
#include "common/tensor/running_means.h"

namespace sluice {

// Externally synchronized. The vectors have the layout's size.
class PulledMeans {
 public:
  // For a model without running means.
  PulledMeans() = default;
  // `elements` may be running means. Their `decay` is not read.
  explicit PulledMeans(RunningMeans elements);

  const RunningMeans& elements() const { return elements_; }

  // Keeps what was pulled.
  void Keep(absl::Span<const float> parameters);

  // `means` lie within the elements, and say how much of what was pulled is left in `pushed`.
  // Writes to `pushed` what was added to each, and returns what to tell the server.
  RunningMeans Subtract(const RunningMeans& means, absl::Span<float> pushed) const;

 private:
  RunningMeans elements_;
  std::vector<float> values_;  // of the elements, one after the other; empty before Keep()
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_PULLED_MEANS_H_
