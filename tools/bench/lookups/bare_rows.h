// The least that rows in memory can cost: an array, whose places follow from the ids, and neither
// an index, nor an optimizer, nor old versions.

#ifndef SLUICE_TOOLS_BENCH_LOOKUPS_BARE_ROWS_H_
#define SLUICE_TOOLS_BENCH_LOOKUPS_BARE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace sluice::bench {

// Externally synchronized.
class BareRows {
 public:
  // Rows of `width` floats, each with `slots` more of that width beside it.
  BareRows(uint64_t rows, size_t width, size_t slots);

  // Copies the rows of `ids` to `to`, one after the other.
  void Read(absl::Span<const uint64_t> ids, absl::Span<float> to) const;
  // Adds to each row, and to each of its slots, the next `width` numbers of `gradients`.
  void Add(absl::Span<const uint64_t> ids, absl::Span<const float> gradients);

 private:
  // Neighbours among the ids lie far apart, as rows in an order of their first use do.
  size_t PlaceOf(uint64_t id) const { return (id * 0x9E3779B97F4A7C15 & mask_) * record_; }

  const size_t width_;
  const size_t record_;
  const uint64_t mask_;
  std::vector<float> records_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_LOOKUPS_BARE_ROWS_H_
