// SGD on the server, for peers that have only threads and buffers.

#ifndef SLUICE_TOOLS_BENCH_ROUNDS_PLAIN_SGD_H_
#define SLUICE_TOOLS_BENCH_ROUNDS_PLAIN_SGD_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace sluice::bench {

// Computes parameters −= rate · sum of gradients in one pass. All vectors have the same size.
void ApplySgd(const std::vector<const float*>& gradients, float rate, absl::Span<float> parameters);

// Thread-safe. One thread per worker calls Step() for each round.
class PlainSgd {
 public:
  // The parameters start as zeros.
  PlainSgd(uint64_t elements, uint32_t workers) : workers_(workers), parameters_(elements) {}

  // Adds a worker's gradient and waits for those of all workers; the last thread applies a step
  // with their mean. `gradient` must not change meanwhile. Returns false if a worker has left.
  bool Step(const std::vector<float>& gradient);

  // Lets all current and later calls of Step() return false.
  void Leave();

  // Returns the parameters of the last step. A thread may read them between two of its Step()
  // calls.
  const std::vector<float>& parameters() const { return parameters_; }

 private:
  const uint32_t workers_;
  std::vector<float> parameters_;  // written while every thread is in Step()
  absl::Mutex mutex_;
  std::vector<const float*> gradients_
      ABSL_GUARDED_BY(mutex_);  // of the workers that wait in Step()
  uint64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_ROUNDS_PLAIN_SGD_H_
