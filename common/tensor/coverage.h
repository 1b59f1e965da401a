// Which part of the vector has arrived: each element once, in any order.

#ifndef SLUICE_COMMON_TENSOR_COVERAGE_H_
#define SLUICE_COMMON_TENSOR_COVERAGE_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/types/optional.h"

namespace sluice {

// Externally synchronized. Memory is bounded by kMaxFragments, whatever a peer sends.
class Coverage {
 public:
  // Disjoint runs that may be known at once. Chunks in order keep it at one.
  static constexpr size_t kMaxFragments = 4096;

  // Of a vector of `size` elements, none of which has arrived.
  explicit Coverage(uint64_t size) : size_(size) {}

  // Notes that [offset, offset + length) has arrived. BAD_CHUNK, changing nothing, if it is empty,
  // lies outside the vector, or overlaps what arrived before.
  absl::Status Add(uint64_t offset, uint64_t length);

  // OK once every element has arrived; else BAD_CHUNK naming the first gap.
  absl::Status CheckComplete() const;

  // The first elements that have not arrived, [begin, end), as far as the next that have.
  struct Gap {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  absl::optional<Gap> FirstGap() const;

  uint64_t covered() const { return covered_; }

 private:
  uint64_t size_;
  uint64_t covered_ = 0;
  std::map<uint64_t, uint64_t> runs_;  // begin -> end; neighbours that touch are one run
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_COVERAGE_H_
