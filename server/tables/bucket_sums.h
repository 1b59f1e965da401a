// The sums of the gradients of the coming step, of the rows of one bucket.

#ifndef SLUICE_SERVER_TABLES_BUCKET_SUMS_H_
#define SLUICE_SERVER_TABLES_BUCKET_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/tensor/table_spec.h"
#include "common/tensor/tensor_chunk.h"

namespace sluice {

// A row of the sums. Its place changes when a row is added.
struct RowSum {
  float* elements = nullptr;
  bool is_first = false;  // nothing was added to it yet
};

// Externally synchronized. The ids of a gradient are sorted, so a step of one gradient, as in
// async, needs no index.
class BucketSums {
 public:
  explicit BucketSums(size_t width) : width_(width) {}

  // The row of `id`, to which the caller adds. `share` of the divisor is added. The ids of one
  // gradient come in ascending order, then EndGradient(), which the methods below need.
  RowSum Row(RowId id, float share);
  void EndGradient();
  // Clear() keeps the memory of the largest step, but at most 256 KiB of sums: a bucket that one
  // step filled may have few rows in all others.
  void Clear();

  size_t size() const { return ids_.size(); }
  bool Has(RowId id) const;
  // The indices of the rows, in ascending order of their ids.
  std::vector<uint32_t> Order() const;
  RowId id(uint32_t index) const { return ids_[index]; }
  absl::Span<const RowId> ids() const { return ids_; }  // by index
  float share(uint32_t index) const { return shares_[index]; }
  absl::Span<const float> sum(uint32_t index) const {
    return absl::MakeConstSpan(sums_).subspan(index * width_, width_);
  }

 private:
  // That of the row, or of the next one if it is not there yet.
  uint32_t IndexOf(RowId id);

  const size_t width_;
  bool first_gradient_ = true;
  absl::flat_hash_map<RowId, uint32_t> index_;  // empty while there is one gradient
  std::vector<RowId> ids_;
  std::vector<float> sums_;  // those of ids_; what follows is not used
  std::vector<float> shares_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_BUCKET_SUMS_H_
