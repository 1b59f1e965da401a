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

  // `means` say how much of what was pulled is left in `pushed`. Writes to `pushed` what was added
  // to each, and returns what to tell the server. What is left whole (a decay of 1) adds 0, so that
  // it keeps its bits: elements that were named above only if they equal what was pulled, others
  // without a look at them. Others with a smaller decay stay as they are; with `whole_only`, all
  // that have one.
  RunningMeans Subtract(const RunningMeans& means, bool whole_only, absl::Span<float> pushed) const;

 private:
  static void Take(const RunningMean& mean, const float* pulled, bool whole_only,
                   absl::Span<float> pushed, RunningMeans* told);

  RunningMeans elements_;
  std::vector<float> values_;  // of the elements, one after the other; empty before Keep()
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_PULLED_MEANS_H_
