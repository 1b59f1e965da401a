#include "server/tables/bucket_sums.h"

#include <algorithm>
#include <numeric>

namespace sluice {
namespace {

// Elements of the sums for which a bucket keeps memory from one step to the next: 256 KiB.
constexpr size_t kMostKept = 65536;

}  // namespace

RowSum BucketSums::Row(RowId id, float share) {
  const uint32_t index = IndexOf(id);
  const bool is_first = index == ids_.size();
  if (is_first) {
    ids_.push_back(id);
    shares_.push_back(share);
    const size_t end = ids_.size() * width_;
    if (end > sums_.size()) sums_.resize(end);
  } else {
    shares_[index] += share;
  }
  return {sums_.data() + index * width_, is_first};
}

uint32_t BucketSums::IndexOf(RowId id) {
  const auto next = static_cast<uint32_t>(ids_.size());
  if (first_gradient_) return next;
  if (index_.empty()) {
    for (uint32_t i = 0; i < next; ++i) index_.emplace(ids_[i], i);
  }
  return index_.try_emplace(id, next).first->second;
}

void BucketSums::EndGradient() { first_gradient_ = ids_.empty(); }

void BucketSums::Clear() {
  first_gradient_ = true;
  index_.clear();
  ids_.clear();
  shares_.clear();
  if (sums_.size() <= kMostKept) return;
  ids_.shrink_to_fit();
  shares_.shrink_to_fit();
  sums_ = {};
}

bool BucketSums::Has(RowId id) const {
  return index_.empty() ? std::binary_search(ids_.begin(), ids_.end(), id) : index_.contains(id);
}

std::vector<uint32_t> BucketSums::Order() const {
  std::vector<uint32_t> order(ids_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto by_id = [this](uint32_t a, uint32_t b) { return ids_[a] < ids_[b]; };
  if (!std::is_sorted(ids_.begin(), ids_.end())) std::sort(order.begin(), order.end(), by_id);
  return order;
}

}  // namespace sluice
