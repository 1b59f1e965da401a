// Keeps the running means of a model as they were pulled. A push subtracts them, so that it brings
// only what its batches have added (common/tensor/running_means.h). A ParameterClient owns one.

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
  // `elements` are those that may be running means. Their `decay` is not read.
  explicit PulledMeans(RunningMeans elements);

  const RunningMeans& elements() const { return elements_; }

  // Keeps the values of elements() that were pulled.
  void Keep(absl::Span<const float> parameters);

  // Subtracts the pulled values from `pushed`, and returns the running means that the push must
  // tell the server. The decay of each of `means` says how much of the pulled value is left in
  // `pushed`.
  // - With a decay of 1, no batch has changed the elements. Zeros are written to `pushed`, so that
  //   the server's values keep their bits. But elements() that differ from what was pulled were set
  //   by the program: they stay as they are. Elements that are not in elements() are not compared.
  // - With a smaller decay, decay times the pulled value is subtracted. Elements stay as they are
  //   if `whole_only` is true, or if they are not in elements().
  // What stays as it is, is pushed as a value and is not returned. Before Keep(), all stays as it
  // is, if there are elements().
  RunningMeans Subtract(const RunningMeans& means, bool whole_only, absl::Span<float> pushed) const;

 private:
  static void Take(const RunningMean& mean, const float* pulled, bool whole_only,
                   absl::Span<float> pushed, RunningMeans* told);

  RunningMeans elements_;
  std::vector<float> values_;  // of the elements, one after the other; empty before Keep()
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_PULLED_MEANS_H_
