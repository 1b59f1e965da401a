// SGD on the server, for peers that are threads and buffers and nothing else.

#ifndef SLUICE_TOOLS_BENCH_ROUNDS_PLAIN_SGD_H_
#define SLUICE_TOOLS_BENCH_ROUNDS_PLAIN_SGD_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace sluice::bench {

// parameters −= rate · gradients' sum, in one pass. All are of one size.
void ApplySgd(const std::vector<const float*>& gradients, float rate, absl::Span<float> parameters);

// Thread-safe. One thread for each worker calls Step() again and again.
class PlainSgd {
 public:
  // The parameters begin as zeros.
  PlainSgd(uint64_t elements, uint32_t workers) : workers_(workers), parameters_(elements) {}

  // Brings a worker's gradient, which must stay as it is, and waits until those of all workers have
  // come; the last thread to come takes the step with their mean. False if a worker has left.
  bool Step(const std::vector<float>& gradient);

  // Ends all waiting, now and later.
  void Leave();

  // Those of the last step, to be read by a thread between two of its own steps.
  const std::vector<float>& parameters() const { return parameters_; }

 private:
  const uint32_t workers_;
  std::vector<float> parameters_;  // written while every thread is in Step()
  absl::Mutex mutex_;
  std::vector<const float*> gradients_ ABSL_GUARDED_BY(mutex_);  // of those who have come
  uint64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_ROUNDS_PLAIN_SGD_H_
