// What any thread may ask a bucket.

#include <algorithm>

#include "server/tables/row_bucket.h"

namespace sluice {
namespace {

// How many of `more` entries a map could not take as it is. It is full at 7/8.
template <typename Map>
uint64_t BeyondRoom(const Map& map, uint64_t more) {
  const uint64_t most = map.capacity() / 8 * 7;
  const uint64_t entries = map.size() + more;
  return entries > most ? std::min(more, entries - most) : 0;
}

}  // namespace

FoundRow RowBucket::Find(uint64_t step, RowId id, size_t count, float* to) const {
  const auto row = rows_.find(id);
  if (row != rows_.end() && row->second.touched() <= step) {
    const RowEntry& entry = row->second;
    if (!entry.on_disk()) std::copy_n(entry.record()->elements(), count, to);
    return {StoredAs::kRow, entry.touched(), 0, entry.on_disk()};
  }
  const auto waiting = waiting_.find(id);
  if (waiting != waiting_.end() && waiting->second.touched <= step) {
    return {StoredAs::kWaiting, waiting->second.touched, waiting->second.touches};
  }
  FoundRow found;
  history_.Find(step, key_, id, [&](const PastRows& past, const PastRow& before) {
    found = {before.before, before.touched, before.touches};
    if (before.before != StoredAs::kRow) return;
    std::copy_n(past.ElementsOf(before).begin(), count, to);
  });
  return found;
}

void RowBucket::FetchIndex(absl::Span<const RowId> ids) const {
  absl::MutexLock lock(&mu_);
  for (const RowId id : ids.first(std::min(kFetchedAhead, ids.size()))) rows_.prefetch(id);
}

void RowBucket::FetchRows(absl::Span<const RowId> ids) const {
  absl::MutexLock lock(&mu_);
  for (const RowId id : ids) {
    const auto found = rows_.find(id);
    if (found != rows_.end() && !found->second.on_disk()) {
      found->second.record()->Prefetch(shape_.width());
    }
  }
}

size_t RowBucket::Read(uint64_t step, absl::Span<const RowId> ids,
                       absl::Span<float* const> to) const {
  std::vector<size_t> absent;
  std::vector<RowOnDisk> on_disk;
  {
    absl::MutexLock lock(&mu_);
    for (size_t i = 0; i < ids.size(); ++i) {
      const FoundRow found = Find(step, ids[i], shape_.width(), to[i]);
      if (found.as != StoredAs::kRow) absent.push_back(i);
      if (found.on_disk) on_disk.push_back(PlaceOf(ids[i], to[i]));
    }
  }
  ReadFromDisk(step, shape_.width(), on_disk);
  for (const size_t i : absent) {
    InitializeRow(shape_.spec.initializer, shape_.initializer_key, ids[i], {to[i], shape_.width()});
  }
  return absent.size();
}

// What a later step has touched is as the history tells.
std::vector<RowId> RowBucket::IdsAt(uint64_t step, uint64_t after) const {
  const auto is_wanted = [&](uint64_t touched) { return after < touched && touched <= step; };
  std::vector<RowId> ids;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [id, entry] : rows_) {
      if (is_wanted(entry.touched())) ids.push_back(id);
    }
    for (const auto& [id, waiting] : waiting_) {
      if (is_wanted(waiting.touched)) ids.push_back(id);
    }
    history_.AppendIds(step, after, key_, &ids);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::vector<FoundRow> RowBucket::FindAt(uint64_t step, absl::Span<const RowId> ids,
                                        absl::Span<float> elements) const {
  std::vector<FoundRow> found;
  found.reserve(ids.size());
  const size_t size = shape_.elements();
  std::vector<RowOnDisk> on_disk;
  {
    absl::MutexLock lock(&mu_);
    for (size_t i = 0; i < ids.size(); ++i) {
      float* const to = elements.data() + i * size;
      found.push_back(Find(step, ids[i], size, to));
      if (found.back().on_disk) on_disk.push_back(PlaceOf(ids[i], to));
    }
  }
  ReadFromDisk(step, size, on_disk);
  return found;
}

std::vector<RowId> RowBucket::RemovedAt(uint64_t step, uint64_t after) const {
  std::vector<RowId> ids;
  absl::MutexLock lock(&mu_);
  for (const Removed& removed : removed_) {
    if (after < removed.step && removed.step <= step) ids.push_back(removed.id);
  }
  return ids;
}

RowAges RowBucket::AgesAt(uint64_t step, size_t most) const {
  RowAges ages;
  absl::MutexLock lock(&mu_);
  for (const auto& [id, entry] : rows_) {
    if (ages.rows == most) break;
    ++ages.rows;
    ages.sum += step - std::min(step, entry.touched());
  }
  return ages;
}

RowGrowth RowBucket::CountNew(absl::Span<const RowId> ids) const {
  RowGrowth growth;
  uint64_t come_back = 0;
  absl::MutexLock lock(&mu_);
  for (const RowId id : ids) {
    const auto row = rows_.find(id);
    if (row != rows_.end()) {
      if (row->second.on_disk()) ++come_back;
      continue;
    }
    const auto waits = waiting_.find(id);
    const uint32_t touches = waits == waiting_.end() ? 0 : waits->second.touches;
    if (shape_.Admits(touches)) {
      ++growth.rows;
    } else if (touches == 0) {
      ++growth.waiting;
    }
  }
  growth.record_bytes = pages_.BytesFor(growth.rows + come_back);
  growth.index_bytes = BeyondRoom(rows_, growth.rows) * kIndexBytes +
                       BeyondRoom(waiting_, growth.waiting) * kWaitingBytes;
  return growth;
}

}  // namespace sluice
