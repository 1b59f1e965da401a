// Records which elements of a vector have arrived. They may arrive in any order, each once.

#ifndef SLUICE_COMMON_TENSOR_COVERAGE_H_
#define SLUICE_COMMON_TENSOR_COVERAGE_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/types/optional.h"

namespace sluice {

// Externally synchronized. kMaxFragments bounds its memory, whatever a peer sends.
class Coverage {
 public:
  // The most disjoint runs that it records. Chunks that arrive in order make one run.
  static constexpr size_t kMaxFragments = 4096;

  // None of the `size` elements has arrived.
  explicit Coverage(uint64_t size) : size_(size) {}

  // Notes that [offset, offset + length) has arrived. BAD_CHUNK if it is empty, lies outside the
  // vector, overlaps what arrived before, or would make too many runs; then nothing changes.
  absl::Status Add(uint64_t offset, uint64_t length);

  // OK if every element has arrived. Otherwise BAD_CHUNK, which names the first gap.
  absl::Status CheckComplete() const;

  // The first run of elements from `from` on that have not arrived: [begin, end). Absent if all
  // have.
  struct Gap {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  absl::optional<Gap> FirstGap(uint64_t from = 0) const;

  uint64_t covered() const { return covered_; }

 private:
  uint64_t size_;
  uint64_t covered_ = 0;
  std::map<uint64_t, uint64_t> runs_;  // begin -> end; neighbours that touch are one run
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_COVERAGE_H_
