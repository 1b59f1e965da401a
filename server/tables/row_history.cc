#include "server/tables/row_history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice {
namespace {

// Calls act(rows) for what a step has changed in a bucket, until it returns true.
template <typename Act>
bool AnyOfBucket(const PastStep& past, uint64_t key, const Act& act) {
  auto at = std::lower_bound(past.buckets.begin(), past.buckets.end(), key,
                             [](const PastRows& rows, uint64_t k) { return rows.key < k; });
  for (; at != past.buckets.end() && at->key == key; ++at) {
    if (at->made && act(*at)) return true;
  }
  return false;
}

void CountRows(PastStep& step) {
  step.rows = 0;
  for (const PastRows& rows : step.buckets) step.rows += rows.rows.size();
}

}  // namespace

void RowHistory::Hold(uint64_t step) {
  absl::MutexLock lock(&mu_);
  ++held_[step];
}

void RowHistory::Release(uint64_t step) {
  std::vector<std::shared_ptr<PastStep>> unneeded;
  absl::MutexLock lock(&mu_);
  const auto held = held_.find(step);
  if (--held->second == 0) held_.erase(held);
  unneeded = TakeUnneeded();
}

void RowHistory::Add(std::shared_ptr<PastStep> past) {
  absl::MutexLock lock(&mu_);
  latest_.store(past->step, std::memory_order_relaxed);
  steps_.emplace(past->step, std::move(past));
}

void RowHistory::EndStep() {
  {
    std::vector<std::shared_ptr<PastStep>> unneeded;
    absl::MutexLock lock(&mu_);
    if (!steps_.empty()) CountRows(*steps_.rbegin()->second);
    unneeded = TakeUnneeded();
  }
  while (const absl::optional<Neighbours> both = FindMerge()) {
    Replace(*both, Merged(*both->older, *both->newer));
  }
}

bool RowHistory::AnyHeld(uint64_t begin, uint64_t end) const {
  const auto held = held_.lower_bound(begin);
  return held != held_.end() && held->first < end;
}

absl::optional<RowHistory::Neighbours> RowHistory::FindMerge() const {
  absl::MutexLock lock(&mu_);
  for (auto newer = steps_.rbegin(); newer != steps_.rend(); ++newer) {
    const auto older = std::next(newer);
    if (older == steps_.rend()) break;
    const bool is_small = older->second->rows <= 2 * newer->second->rows;
    if (!is_small || AnyHeld(older->first, newer->first)) continue;
    return Neighbours{older->second, newer->second};
  }
  return absl::nullopt;
}

void RowHistory::Replace(const Neighbours& both, std::shared_ptr<PastStep> merged) {
  std::vector<std::shared_ptr<PastStep>> unneeded;
  absl::MutexLock lock(&mu_);
  if (steps_.erase(both.older->step) == 0) return;
  steps_[both.newer->step] = std::move(merged);
  unneeded = TakeUnneeded();
}

std::vector<std::shared_ptr<PastStep>> RowHistory::TakeUnneeded() {
  std::vector<std::shared_ptr<PastStep>> unneeded;
  const auto needed = held_.empty() ? steps_.end() : steps_.upper_bound(held_.begin()->first);
  for (auto at = steps_.begin(); at != needed; at = steps_.erase(at)) {
    unneeded.push_back(std::move(at->second));
  }
  return unneeded;
}

bool RowHistory::Find(uint64_t step, uint64_t key, RowId id,
                      absl::FunctionRef<void(const PastRows&, const PastRow&)> take) const {
  // The caller holds the bucket's mutex, and so sees the latest step that has changed the bucket.
  if (latest_.load(std::memory_order_relaxed) <= step) return false;
  absl::MutexLock lock(&mu_);
  for (auto at = steps_.upper_bound(step); at != steps_.end(); ++at) {
    const bool found = AnyOfBucket(*at->second, key, [&](const PastRows& rows) {
      const PastRow* const row = rows.Find(id);
      if (row != nullptr) take(rows, *row);
      return row != nullptr;
    });
    if (found) return true;
  }
  return false;
}

void RowHistory::AppendIds(uint64_t step, uint64_t after, uint64_t key,
                           std::vector<RowId>* ids) const {
  absl::MutexLock lock(&mu_);
  for (auto at = steps_.upper_bound(step); at != steps_.end(); ++at) {
    AnyOfBucket(*at->second, key, [&](const PastRows& rows) {
      for (const PastRow& row : rows.rows) {
        if (after < row.touched && row.touched <= step) ids->push_back(row.id);
      }
      return false;
    });
  }
}

size_t RowHistory::size() const {
  absl::MutexLock lock(&mu_);
  return steps_.size();
}

size_t RowHistory::rows() const {
  absl::MutexLock lock(&mu_);
  size_t rows = 0;
  for (const auto& step : steps_) rows += step.second->rows;
  return rows;
}

}  // namespace sluice
