// Splits work into independent parts and runs them on the available threads.

#ifndef SLUICE_COMMON_BASE_PARALLEL_H_
#define SLUICE_COMMON_BASE_PARALLEL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace sluice {

// Any thread may call it. If the other threads are busy, the caller does the work alone.
class Parallel {
 public:
  virtual ~Parallel() = default;

  // Calls part(0) … part(count − 1), each once, in any order, perhaps several at a time. Returns
  // when all have returned. The calling thread does a share of the work.
  virtual void For(size_t count, absl::FunctionRef<void(size_t)> part) = 0;
};

// Elements in one part of a large vector: 1 MiB of float32.
inline constexpr uint64_t kPartElements = uint64_t{1} << 18;

// The number of parts of a vector.
inline size_t PartsOf(uint64_t size) { return (size + kPartElements - 1) / kPartElements; }

// Calls work(part, begin, end) for each part [begin, end) of a vector of `size` elements.
template <typename Work>
void ForParts(Parallel& parallel, uint64_t size, const Work& work) {
  parallel.For(PartsOf(size), [&](size_t part) {
    const uint64_t begin = part * kPartElements;
    work(part, begin, std::min(size, begin + kPartElements));
  });
}

// Runs all parts on the calling thread, in order.
class Serial final : public Parallel {
 public:
  void For(size_t count, absl::FunctionRef<void(size_t)> part) override {
    for (size_t i = 0; i < count; ++i) part(i);
  }
};

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_PARALLEL_H_
