// Which elements of a pushed vector are running means, such as BatchNorm's averages, and how much
// of the value that the worker pulled is left in them.
//
// A running mean is an exponential moving average: each batch makes it decay · mean + (1 − decay) ·
// (what the batch has). With asynchronous workers the mean of the pushed values would follow the
// batches of one worker at a time, and forget those of the others. So a worker pushes what its
// batches have added, and the next value is
//
//   decay · (value now) + (pushed value),
//
// with the means of both over the gradients of the step. It follows the batches of all workers one
// after the other, however stale each of them is, and it lies between the values of batches.

#ifndef SLUICE_COMMON_TENSOR_RUNNING_MEANS_H_
#define SLUICE_COMMON_TENSOR_RUNNING_MEANS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/tensor/layout.h"
#include "common/tensor/stripes.h"

namespace sluice {

// The elements [begin, end) of a vector.
struct RunningMean {
  uint64_t begin = 0;
  uint64_t end = 0;
  float decay = 0;  // in [0, 1]

  friend bool operator==(const RunningMean& a, const RunningMean& b) {
    return a.begin == b.begin && a.end == b.end && a.decay == b.decay;
  }
};

// `count` elements from `offset` on, of which a peer may state too many to be counted.
inline RunningMean RunningMeanOf(uint64_t offset, uint64_t count, float decay) {
  return {offset, offset + std::min(count, UINT64_MAX - offset), decay};
}

// In ascending order, not empty, without overlaps.
using RunningMeans = std::vector<RunningMean>;

inline constexpr size_t kMostRunningMeans = 65'536;  // of a push

// Adds `mean` at the end of `means`; to the last of them, if the two touch and have one decay.
void Append(const RunningMean& mean, RunningMeans* means);

// OK if these are running means as described above. BAD_ARGUMENT names the first that is not.
absl::Status CheckRunningMeans(const RunningMeans& means);
// OK if each of them is one or more whole STATISTIC ranges of the layout, so that the gradients of
// a step cannot cut the vector into more pieces than it has ranges. CheckRunningMeans() was OK.
absl::Status CheckFits(const RunningMeans& means, const Layout& layout);

// The parts of them that lie in a stripe of the vector, by their places there.
RunningMeans OfStripe(const RunningMeans& means, const Stripes& stripes, uint32_t stripe);

// The weighted mean of the running means of a step's gradients. Elements that a gradient does not
// name have a decay of 0 there.
class MeanOfRunningMeans {
 public:
  void Add(const RunningMeans& means, float weight);
  // The weighted sum of what was added, over `divisor`: the sum of the weights of all gradients of
  // the step, also of those without running means.
  RunningMeans Get(float divisor) const;
  void Clear() { parts_.clear(); }
  bool empty() const { return parts_.empty(); }

 private:
  struct Part {
    uint64_t begin = 0;
    uint64_t end = 0;
    double decay = 0;  // weighted and summed up
  };

  std::vector<Part> parts_;  // as RunningMeans
};

// Calls act(mean, begin, end) for each part of the elements [begin, end) that are running means.
template <typename Act>
void ForEachRunningMean(const RunningMeans& means, uint64_t begin, uint64_t end, Act act) {
  auto mean =
      std::upper_bound(means.begin(), means.end(), begin,
                       [](uint64_t offset, const RunningMean& m) { return offset < m.end; });
  for (; mean != means.end() && mean->begin < end; ++mean) {
    act(*mean, std::max(begin, mean->begin), std::min(end, mean->end));
  }
}

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_RUNNING_MEANS_H_
