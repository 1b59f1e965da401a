#include "server/tables/bucket_sums.h"

#include <algorithm>
#include <numeric>

namespace sluice {

RowSum BucketSums::Row(RowId id, float share) {
  const auto [at, is_first] = index_.try_emplace(id, static_cast<uint32_t>(ids_.size()));
  const uint32_t index = at->second;
  if (is_first) {
    ids_.push_back(id);
    sums_.resize(sums_.size() + width_);
    shares_.push_back(share);
  } else {
    shares_[index] += share;
  }
  return {sums_.data() + index * width_, is_first};
}

void BucketSums::Clear() {
  index_.clear();
  ids_.clear();
  sums_.clear();
  shares_.clear();
}

std::vector<uint32_t> BucketSums::Order() const {
  std::vector<uint32_t> order(ids_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto by_id = [this](uint32_t a, uint32_t b) { return ids_[a] < ids_[b]; };
  if (!std::is_sorted(ids_.begin(), ids_.end())) std::sort(order.begin(), order.end(), by_id);
  return order;
}

}  // namespace sluice
