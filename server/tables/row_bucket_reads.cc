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
  const RowRecord* const record = index_.Find(id);
  if (record != nullptr && record->touched <= step) {
    std::copy_n(record->elements(), count, to);
    return {StoredAs::kRow, record->touched, 0, false};
  }
  const auto on_disk = disk_rows_.find(id);
  if (on_disk != disk_rows_.end() && on_disk->second.touched() <= step) {
    return {StoredAs::kRow, on_disk->second.touched(), 0, true};
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
  for (const RowId id : ids.first(std::min(2 * kFetchedAhead, ids.size()))) {
    index_.Prefetch(id);
    if (!disk_rows_.empty()) disk_rows_.prefetch(id);
  }
}

void RowBucket::FetchRows(absl::Span<const RowId> ids, size_t count) const {
  absl::MutexLock lock(&mu_);
  for (const RowId id : ids.first(std::min(kFetchedAhead, ids.size()))) {
    index_.PrefetchRecord(id, count);
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
    index_.ForEach([&](const RowRecord* record) {
      if (is_wanted(record->touched)) ids.push_back(record->id);
      return true;
    });
    for (const auto& [id, place] : disk_rows_) {
      if (is_wanted(place.touched())) ids.push_back(id);
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
  const auto count = [&](uint64_t touched) {
    ++ages.rows;
    ages.sum += step - std::min(step, touched);
  };
  absl::MutexLock lock(&mu_);
  most = std::min(most, rows());
  // Of those in memory, which are younger, as large a part as of all.
  const size_t in_memory = rows() == 0 ? 0 : most * index_.size() / rows();
  index_.ForEach([&](const RowRecord* record) {
    if (ages.rows == in_memory) return false;
    count(record->touched);
    return true;
  });
  for (const auto& [id, place] : disk_rows_) {
    if (ages.rows == most) break;
    count(place.touched());
  }
  return ages;
}

RowGrowth RowBucket::CountNew(absl::Span<const RowId> ids) const {
  RowGrowth growth;
  uint64_t come_back = 0;
  absl::MutexLock lock(&mu_);
  for (const RowId id : ids) {
    if (index_.Find(id) != nullptr) continue;
    if (disk_rows_.contains(id)) {
      ++come_back;
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
  growth.index_bytes = BeyondRoom(waiting_, growth.waiting) * kWaitingBytes;
  if (memory_.spills()) {  // for each row that comes to memory, another one goes to the disk
    growth.index_bytes += BeyondRoom(disk_rows_, growth.rows) * kDiskPlaceBytes;
  } else {
    growth.index_bytes += index_.BytesFor(growth.rows + come_back);
  }
  return growth;
}

}  // namespace sluice
