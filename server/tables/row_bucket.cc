#include "server/tables/row_bucket.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "common/base/little_endian.h"
#include "common/tensor/tensor_chunk.h"
#include "server/tables/row_computer.h"

namespace sluice {
namespace {

bool ByRowId(const PastRow& a, const PastRow& b) { return a.id < b.id; }

// Gives each row that has elements its place. Returns how many those are.
uint32_t PlaceRows(absl::Span<PastRow> rows) {
  uint32_t end = 0;
  for (PastRow& row : rows) {
    if (row.becomes_row || row.before == StoredAs::kRow) row.at = end++;
  }
  return end;
}

void AddTo(Checksummer& checksum, const PastRow& row, const float* made, size_t elements) {
  checksum.Add(LittleEndian64(row.id));
  if (row.becomes_row) {
    checksum.Add(BytesOf({made, elements}));
  } else {
    checksum.Add(LittleEndian64(row.touches + 1));
  }
}

// What a hash map takes, with a byte of control for each place.
template <typename Map>
uint64_t BytesOf(const Map& map) {
  return map.capacity() * (sizeof(typename Map::value_type) + 1);
}

// Adds the change of a number since it was counted last.
void CountChange(uint64_t now, uint64_t& counted, std::atomic<uint64_t>& sum) {
  if (now == counted) return;
  sum.fetch_add(now - counted, std::memory_order_relaxed);
  counted = now;
}

// How many of `more` entries a map could not take as it is. It is full at 7/8.
template <typename Map>
uint64_t BeyondRoom(const Map& map, uint64_t more) {
  const uint64_t most = map.capacity() / 8 * 7;
  const uint64_t entries = map.size() + more;
  return entries > most ? std::min(more, entries - most) : 0;
}

// Rows that are taken from the disk at once.
constexpr size_t kAtOnce = 1024;
// The part of a bucket's share that stays free when rows have left, so that they leave in groups.
constexpr uint64_t kFreed = 8;
// The exit code of a process that lost what only a checkpoint has. A journal that cannot be synced
// has the same.
constexpr int kLost = 6;

[[noreturn]] void EndWithoutRow(const absl::Status& why) {
  LOG(ERROR) << why.message() << "; start the server again, from its checkpoint";
  std::_Exit(kLost);
}

}  // namespace

RowBucket::RowBucket(const RowShape& shape, uint64_t key, const RowHistory& history,
                     RowMemory& memory, RowCounts& counts)
    : shape_(shape),
      key_(key),
      history_(history),
      memory_(memory),
      counts_(counts),
      disk_records_(memory.file(), shape.elements()),
      pages_(shape.elements()),
      disk_slots_(memory.file(), disk_records_.record_bytes()) {}

void RowBucket::Load(const StoredRow& row) {
  if (memory_.file() != nullptr) SendToDisk(memory_.EvenShare(), 1, [](RowId) { return false; });
  absl::MutexLock lock(&mu_);
  if (row.touches > 0) {
    waiting_[row.id] = {row.touches, row.touched.value()};
  } else {
    const auto on_disk = disk_rows_.find(row.id);
    if (on_disk != disk_rows_.end()) {
      disk_slots_.Free(on_disk->second.slot());
      disk_rows_.erase(on_disk);
    }
    RowRecord* record = index_.Find(row.id);
    if (record == nullptr) record = AddRecord(row.id);
    record->touched = row.touched.value();
    std::copy(row.elements.begin(), row.elements.end(), record->elements());
  }
  Count();
}

PastRow RowBucket::Touched(RowId id, uint32_t sum) const {
  PastRow row;
  row.id = id;
  row.sum = sum;
  row.record = index_.Find(id);
  if (row.record != nullptr) {
    row.before = StoredAs::kRow;
    row.becomes_row = true;
    return row;
  }
  const auto waiting = waiting_.find(id);
  if (waiting != waiting_.end()) {
    row.before = StoredAs::kWaiting;
    row.touches = waiting->second.touches;
  }
  row.becomes_row = shape_.Admits(row.touches);
  return row;
}

void RowBucket::Touch(const BucketSums& sums, PastRows& past) {
  const absl::Span<const RowId> ids = sums.ids();
  if (memory_.file() != nullptr) MakeRoomFor(sums);
  {
    absl::MutexLock lock(&mu_);
    for (uint32_t i = 0; i < ids.size(); ++i) {
      if (i + 2 * kFetchedAhead < ids.size()) index_.Prefetch(ids[i + 2 * kFetchedAhead]);
      if (i + kFetchedAhead < ids.size()) {
        index_.PrefetchRecord(ids[i + kFetchedAhead], shape_.elements());
      }
      past.rows[i] = Touched(ids[i], i);
    }
  }
  if (!std::is_sorted(past.rows.begin(), past.rows.end(), ByRowId)) {
    std::sort(past.rows.begin(), past.rows.end(), ByRowId);
  }
  PlaceRows(past.rows);
}

absl::optional<RowId> RowBucket::Compute(const BucketSums& sums, const RowRule& rule,
                                         PastRows& past) const {
  RowComputer computer(shape_, rule);
  for (const PastRow& row : past.rows) {
    if (!row.becomes_row) continue;
    const bool finite =
        computer.Compute(row, sums.sum(row.sum), sums.share(row.sum), past.ElementsOf(row));
    if (!finite) return row.id;
  }
  return absl::nullopt;
}

RowRecord* RowBucket::AddRecord(RowId id) {
  DCHECK(!disk_rows_.contains(id));
  RowRecord* const record = pages_.Allocate(id);
  index_.Insert(record);
  return record;
}

void RowBucket::MakeRow(uint64_t step, PastRow& row, float* elements) {
  if (row.record != nullptr) {
    row.touched = row.record->touched;
    std::swap_ranges(elements, elements + shape_.elements(), row.record->elements());
  } else {
    row.record = AddRecord(row.id);
    std::copy_n(elements, shape_.elements(), row.record->elements());
    const auto waiting = waiting_.find(row.id);
    if (waiting != waiting_.end()) {
      row.touched = waiting->second.touched;
      waiting_.erase(waiting);
    }
  }
  row.record->touched = step;
}

void RowBucket::MakeWait(uint64_t step, PastRow& row) {
  Waiting& waiting = waiting_[row.id];
  row.touched = waiting.touched;
  waiting = {row.touches + 1, step};
  counts_.dropped.fetch_add(1, std::memory_order_relaxed);
}

void RowBucket::Make(uint64_t step, PastRows& past, Checksummer* checksum) {
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < past.rows.size(); ++i) {
    PastRow& row = past.rows[i];
    if (i + kFetchedAhead < past.rows.size()) FetchRecord(past.rows[i + kFetchedAhead]);
    row.becomes_row ? MakeRow(step, row, past.ElementsOf(row).data()) : MakeWait(step, row);
    if (checksum != nullptr) {
      const float* const made = row.becomes_row ? row.record->elements() : nullptr;
      AddTo(*checksum, row, made, shape_.elements());
    }
    row.record = nullptr;
  }
  past.made = true;
  Count();
}

void RowBucket::FetchRecord(const PastRow& row) const {
  if (row.record != nullptr) row.record->Prefetch(shape_.elements());
}

void RowBucket::FetchRecords(const PastRows& past) const {
  for (const PastRow& row : past.rows.first(std::min(kFetchedAhead, past.rows.size())))
    FetchRecord(row);
}

std::vector<PastRow> RowBucket::TakeOld(uint64_t step) {
  std::vector<PastRow> old;
  index_.ForEach([&](RowRecord* record) {
    if (IsOld(step, record->touched)) {
      old.push_back({record->id, StoredAs::kRow, false, 0, record->touched, 0, 0, record});
    }
    return true;
  });
  std::vector<RowRecord*> records;
  for (const PastRow& row : old) records.push_back(row.record);
  index_.Erase(records);
  absl::erase_if(waiting_, [&](const auto& entry) {
    const Waiting& waiting = entry.second;
    if (!IsOld(step, waiting.touched)) return false;
    old.push_back(
        {entry.first, StoredAs::kWaiting, false, waiting.touches, waiting.touched, 0, 0, nullptr});
    return true;
  });
  std::sort(old.begin(), old.end(), ByRowId);
  return old;
}

void RowBucket::Evict(uint64_t step, PastRows& past) {
  if (memory_.file() != nullptr) TakeFromDisk(OldOnDisk(step));
  absl::MutexLock lock(&mu_);
  PastMemory memory;
  memory.rows = TakeOld(step);
  memory.floats = FloatBuffer(PlaceRows(absl::MakeSpan(memory.rows)) * shape_.elements());
  past.Own(std::move(memory));
  for (PastRow& row : past.rows) {
    removed_.push_back({step, row.id});
    if (row.record == nullptr) continue;
    std::copy_n(row.record->elements(), shape_.elements(), past.ElementsOf(row).data());
    pages_.Free(row.record);
    row.record = nullptr;
    counts_.removed.fetch_add(1, std::memory_order_relaxed);
  }
  past.made = true;
  Count();
}

void RowBucket::ForgetRemovals(uint64_t until) {
  absl::MutexLock lock(&mu_);
  const auto first = std::find_if(removed_.begin(), removed_.end(),
                                  [&](const Removed& removed) { return removed.step > until; });
  removed_.erase(removed_.begin(), first);
}

void RowBucket::Count() {
  CountChange(rows(), counted_rows_, counts_.rows);
  CountChange(disk_rows_.size(), counted_on_disk_, counts_.on_disk);
  CountChange(waiting_.size(), counted_waiting_, counts_.waiting);
  const uint64_t index = index_.bytes() + BytesOf(disk_rows_) + BytesOf(waiting_);
  memory_.bytes.fetch_add(pages_.bytes() + index - counted_bytes_, std::memory_order_relaxed);
  CountChange(pages_.bytes() + index, counted_bytes_, counts_.bytes);
  CountChange(rows() * record_bytes(), counted_row_bytes_, memory_.row_bytes);
  CountChange(index, counted_index_bytes_, memory_.index_bytes);
}

// ---- Reading ----

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

// ---- Memory and disk ----

// Only the thread that makes steps moves rows, so it reads records, and the disk, without the
// mutex.

RowBucket::Coming RowBucket::ComingOf(const BucketSums& sums) const {
  Coming coming;
  absl::MutexLock lock(&mu_);
  coming.share = memory_.ShareOf(rows() * record_bytes());
  for (const RowId id : sums.ids()) {
    if (index_.Find(id) != nullptr) continue;
    if (disk_rows_.contains(id)) {
      coming.on_disk.push_back(id);
      continue;
    }
    const auto waiting = waiting_.find(id);
    if (shape_.Admits(waiting == waiting_.end() ? 0 : waiting->second.touches)) ++coming.fresh;
  }
  return coming;
}

void RowBucket::MakeRoomFor(const BucketSums& sums) {
  const Coming coming = ComingOf(sums);
  SendToDisk(coming.share, coming.fresh + coming.on_disk.size(),
             [&](RowId id) { return sums.Has(id); });
  TakeFromDisk(coming.on_disk);
}

std::vector<DiskRow> RowBucket::OldestRows(uint64_t room, size_t more,
                                           absl::FunctionRef<bool(RowId)> stays) const {
  std::vector<DiskRow> old;
  absl::MutexLock lock(&mu_);
  if (index_.size() + more <= room) return old;
  index_.ForEach([&](RowRecord* record) {
    if (record->touched <= DiskPlace::kMostTouched && !stays(record->id)) {
      old.push_back({record->id, record->touched, record->elements(), 0});
    }
    return true;
  });
  const size_t most = index_.size() + more - (room - room / kFreed);
  if (most >= old.size()) return old;
  std::nth_element(old.begin(), old.begin() + static_cast<std::ptrdiff_t>(most), old.end(),
                   [](const DiskRow& a, const DiskRow& b) { return a.touched < b.touched; });
  old.resize(most);
  return old;
}

void RowBucket::SendToDisk(uint64_t share, size_t more, absl::FunctionRef<bool(RowId)> stays) {
  std::vector<DiskRow> old = OldestRows(share / record_bytes(), more, stays);
  if (old.empty()) return;
  const std::vector<uint32_t> slots = TakeSlots(old);
  const absl::Status written = disk_records_.Write(old);
  memory_.NoteWrite(written);
  absl::MutexLock lock(&mu_);
  if (!written.ok()) {
    for (const uint32_t slot : slots) disk_slots_.Free(slot);
    return;
  }
  std::vector<RowRecord*> records;
  for (size_t i = 0; i < old.size(); ++i) {
    records.push_back(index_.Find(old[i].id));
    disk_rows_.emplace(old[i].id, DiskPlace(slots[i], old[i].touched));
  }
  index_.Erase(records);
  for (RowRecord* const record : records) pages_.Free(record);
  if (pages_.bytes() > share + share / kFreed) Compact();
  Count();
}

std::vector<uint32_t> RowBucket::TakeSlots(std::vector<DiskRow>& rows) {
  absl::MutexLock lock(&mu_);
  std::vector<uint32_t> slots = disk_slots_.Take(rows.size());
  rows.resize(slots.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i].offset = disk_slots_.OffsetOf(slots[i]);
  return slots;
}

void RowBucket::Compact() {
  RecordPages compact(shape_.elements());
  index_.Replace([&](const RowRecord* record) {
    RowRecord* const moved = compact.Allocate(record->id);
    moved->touched = record->touched;
    std::copy_n(record->elements(), shape_.elements(), moved->elements());
    return moved;
  });
  pages_ = std::move(compact);
}

void RowBucket::TakeFromDisk(absl::Span<const RowId> ids) {
  for (size_t begin = 0; begin < ids.size(); begin += kAtOnce) {
    TakeSomeFromDisk(ids.subspan(begin, kAtOnce));
  }
}

void RowBucket::TakeSomeFromDisk(absl::Span<const RowId> ids) {
  const size_t size = shape_.elements();
  std::vector<float> elements(ids.size() * size);
  std::vector<RowOnDisk> rows;
  {
    absl::MutexLock lock(&mu_);
    for (size_t i = 0; i < ids.size(); ++i) {
      rows.push_back(PlaceOf(ids[i], elements.data() + i * size));
    }
  }
  for (const RowOnDisk& row : rows) {
    const absl::Status read = disk_records_.Read(row.offset, row.id, row.touched, {row.to, size});
    if (!read.ok()) EndWithoutRow(read);
  }
  absl::MutexLock lock(&mu_);
  for (const RowOnDisk& row : rows) {
    const auto place = disk_rows_.find(row.id);
    disk_slots_.Free(place->second.slot());
    disk_rows_.erase(place);
    RowRecord* const record = AddRecord(row.id);
    record->touched = row.touched;
    std::copy_n(row.to, size, record->elements());
  }
  Count();
}

std::vector<RowId> RowBucket::OldOnDisk(uint64_t step) const {
  std::vector<RowId> old;
  absl::MutexLock lock(&mu_);
  for (const auto& [id, place] : disk_rows_) {
    if (IsOld(step, place.touched())) old.push_back(id);
  }
  return old;
}

// Any thread may call the rest.

RowBucket::RowOnDisk RowBucket::PlaceOf(RowId id, float* to) const {
  const DiskPlace place = disk_rows_.find(id)->second;
  return {id, place.touched(), disk_slots_.OffsetOf(place.slot()), to};
}

// Its slot may have another row by now. While the mutex is held it cannot.
void RowBucket::ReadFromDisk(uint64_t step, size_t count,
                             const std::vector<RowOnDisk>& rows) const {
  for (const RowOnDisk& row : rows) {
    const absl::Span<float> to(row.to, count);
    if (disk_records_.Read(row.offset, row.id, row.touched, to).ok()) continue;
    absl::MutexLock lock(&mu_);
    if (!Find(step, row.id, count, row.to).on_disk) continue;
    const RowOnDisk now = PlaceOf(row.id, row.to);
    const absl::Status read = disk_records_.Read(now.offset, now.id, now.touched, to);
    if (!read.ok()) EndWithoutRow(read);
  }
}

}  // namespace sluice
