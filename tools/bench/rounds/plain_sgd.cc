#include "tools/bench/rounds/plain_sgd.h"

#include <algorithm>

#include "tools/bench/harness/gradient.h"

namespace sluice::bench {
namespace {

constexpr size_t kBlock = 4096;  // elements: their sum stays in the cache

}  // namespace

void ApplySgd(const std::vector<const float*>& gradients, float rate,
              absl::Span<float> parameters) {
  float sum[kBlock];
  for (size_t begin = 0; begin < parameters.size(); begin += kBlock) {
    const size_t size = std::min(kBlock, parameters.size() - begin);
    std::copy_n(gradients.front() + begin, size, sum);
    for (size_t worker = 1; worker < gradients.size(); ++worker) {
      const float* const gradient = gradients[worker] + begin;
      for (size_t i = 0; i < size; ++i) sum[i] += gradient[i];
    }
    float* const block = parameters.data() + begin;
    for (size_t i = 0; i < size; ++i) block[i] -= rate * sum[i];
  }
}

bool PlainSgd::Step(const std::vector<float>& gradient) {
  const absl::MutexLock lock(&mutex_);
  gradients_.push_back(gradient.data());
  if (gradients_.size() == workers_) {
    // Works under the mutex, since all other workers wait for this step.
    ApplySgd(gradients_, static_cast<float>(kLearningRate / workers_), absl::MakeSpan(parameters_));
    gradients_.clear();
    ++steps_;
    return true;
  }
  const uint64_t before = steps_;
  const auto done = [&]()
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return steps_ > before || left_; };
  mutex_.Await(absl::Condition(&done));
  return steps_ > before;
}

void PlainSgd::Leave() {
  const absl::MutexLock lock(&mutex_);
  left_ = true;
}

}  // namespace sluice::bench
