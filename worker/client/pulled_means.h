// Keeps the statistics of a model as they were pulled. A push subtracts them, so that it brings
// only what its batches have added (common/tensor/running_means.h). HeldParameters owns one.

#ifndef SLUICE_WORKER_CLIENT_PULLED_MEANS_H_
#define SLUICE_WORKER_CLIENT_PULLED_MEANS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "common/tensor/running_means.h"

namespace sluice {

// Externally synchronized. The vectors have the layout's size.
class PulledMeans {
 public:
  // For a model without statistics.
  PulledMeans() = default;
  // `elements` are whole ranges of the layout. Their `decay` is not read.
  PulledMeans(RunningMeans elements, const Layout& layout);

  // Keeps the values of elements() that were pulled.
  void Keep(absl::Span<const float> parameters);

  // Subtracts the pulled values from `pushed`, and returns the running means that the push must
  // tell the server. The decay of each of `means` says how much of the pulled value is left in
  // `pushed`. Elements that were not kept stay as they are, and nothing is told of them.
  // - With a decay of 1, no batch has changed the elements. If they equal what was pulled, zeros
  //   are written to `pushed`, so that the server's values keep their bits. A count (int64) becomes
  //   the number of new batches. Others that differ were set by the program: they stay values.
  // - With a smaller decay, decay times the pulled value is subtracted, unless `whole_only` is
  //   true. What stays a value is not returned.
  RunningMeans Subtract(const RunningMeans& means, bool whole_only, absl::Span<float> pushed) const;

 private:
  // Of elements in one range: `pulled` are the values that were kept.
  void Take(const RunningMean& mean, const float* pulled, bool whole_only, absl::Span<float> pushed,
            RunningMeans* told) const;

  RunningMeans elements_;
  absl::flat_hash_set<uint64_t> counts_;  // where the ranges of counts begin
  std::vector<float> values_;  // of the elements, one after the other; empty before Keep()
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_PULLED_MEANS_H_
