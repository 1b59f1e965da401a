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

void Prefetch(const PastRow& row, size_t elements) {
  if (row.record != nullptr) row.record->Prefetch(elements);
}

// Adds what was made of a row.
void AddTo(Checksummer& checksum, const PastRow& row, size_t elements) {
  checksum.Add(LittleEndian64(row.id));
  if (row.becomes_row) {
    checksum.Add(BytesOf({row.record->elements(), elements}));
  } else {
    checksum.Add(LittleEndian64(row.touches + 1));
  }
}

// Rows that are taken from the disk at once.
constexpr size_t kAtOnce = 1024;
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
      rows_(shape, memory, counts),
      memory_(memory),
      counts_(counts),
      disk_(memory.file(), shape.elements()) {}

void RowBucket::Load(const StoredRow& row) {
  if (memory_.file() != nullptr) SendToDisk(memory_.EvenShare(), 1, [](RowId) { return false; });
  absl::MutexLock lock(&mu_);
  rows_.Remove({&row.id, 1});
  if (row.touches > 0) {
    rows_.Wait(row.id, row.touches, row.touched.value());
  } else {
    RowRecord* const record = rows_.Add(row.id);
    record->touched = row.touched.value();
    std::copy(row.elements.begin(), row.elements.end(), record->elements());
  }
  rows_.Count();
}

PastRow RowBucket::Before(RowId id) const {
  const FoundRow found = rows_.Find(id);
  PastRow row;
  row.id = id;
  row.before = found.as;
  row.touches = found.touches;
  row.touched = found.touched;
  row.record = found.record;
  return row;
}

void RowBucket::Touch(const BucketSums& sums, PastRows& past) {
  const absl::Span<const RowId> ids = sums.ids();
  if (memory_.file() != nullptr) MakeRoomFor(sums);
  {
    absl::MutexLock lock(&mu_);
    for (uint32_t i = 0; i < ids.size(); ++i) {
      if (i + 2 * kFetchedAhead < ids.size()) rows_.Prefetch(ids[i + 2 * kFetchedAhead]);
      if (i + kFetchedAhead < ids.size()) {
        rows_.PrefetchRecord(ids[i + kFetchedAhead], shape_.elements());
      }
      PastRow& row = past.rows[i];
      row = Before(ids[i]);
      row.sum = i;
      row.becomes_row = row.before == StoredAs::kRow || shape_.Admits(row.touches);
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

void RowBucket::Make(uint64_t step, PastRows& past, Checksummer* checksum) {
  const size_t elements = shape_.elements();
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < past.rows.size(); ++i) {
    PastRow& row = past.rows[i];
    if (i + kFetchedAhead < past.rows.size()) Prefetch(past.rows[i + kFetchedAhead], elements);
    if (!row.becomes_row) {
      rows_.Wait(row.id, row.touches + 1, step);
      counts_.dropped.fetch_add(1, std::memory_order_relaxed);
    } else {
      const absl::Span<float> made = past.ElementsOf(row);
      if (row.record != nullptr) {
        std::swap_ranges(made.begin(), made.end(), row.record->elements());
      } else {
        row.record = rows_.Add(row.id);
        std::copy(made.begin(), made.end(), row.record->elements());
      }
      row.record->touched = step;
    }
    if (checksum != nullptr) AddTo(*checksum, row, elements);
    row.record = nullptr;
  }
  past.made = true;
  rows_.Count();
}

void RowBucket::FetchRecords(const PastRows& past) const {
  for (const PastRow& row : past.rows.first(std::min(kFetchedAhead, past.rows.size()))) {
    Prefetch(row, shape_.elements());
  }
}

std::vector<RowId> RowBucket::OldIds(uint64_t step) const {
  std::vector<RowId> old;
  absl::MutexLock lock(&mu_);
  rows_.ForEach([&](RowId id, const FoundRow& row) {
    if (step > row.touched && step - row.touched > shape_.spec.evict_after) old.push_back(id);
    return true;
  });
  std::sort(old.begin(), old.end());
  return old;
}

void RowBucket::Evict(uint64_t step, PastRows& past) {
  const std::vector<RowId> old = OldIds(step);
  if (memory_.file() != nullptr) TakeFromDisk(old);
  PastMemory memory;
  memory.rows.reserve(old.size());
  absl::MutexLock lock(&mu_);
  for (const RowId id : old) memory.rows.push_back(Before(id));
  memory.floats = FloatBuffer(PlaceRows(absl::MakeSpan(memory.rows)) * shape_.elements());
  past.Own(std::move(memory));
  for (PastRow& row : past.rows) {
    removed_.push_back({step, row.id});
    if (row.record == nullptr) continue;
    std::copy_n(row.record->elements(), shape_.elements(), past.ElementsOf(row).data());
    row.record = nullptr;
    counts_.removed.fetch_add(1, std::memory_order_relaxed);
  }
  rows_.Remove(old);
  past.made = true;
  rows_.Count();
}

void RowBucket::ForgetRemovals(uint64_t until) {
  absl::MutexLock lock(&mu_);
  const auto first = std::find_if(removed_.begin(), removed_.end(),
                                  [&](const Removed& removed) { return removed.step > until; });
  removed_.erase(removed_.begin(), first);
}

// ---- Reading ----

FoundRow RowBucket::Find(uint64_t step, RowId id, size_t count, float* to) const {
  FoundRow found = rows_.Find(id);
  if (found.as != StoredAs::kAbsent && found.touched <= step) {
    const RowRecord* const record = std::exchange(found.record, nullptr);
    if (record != nullptr) std::copy_n(record->elements(), count, to);
    return found;
  }
  found = {};
  history_.Find(step, key_, id, [&](const PastRows& past, const PastRow& before) {
    found = {before.before, before.touched, before.touches};
    if (before.before != StoredAs::kRow) return;
    std::copy_n(past.ElementsOf(before).begin(), count, to);
  });
  return found;
}

void RowBucket::FetchIndex(absl::Span<const RowId> ids) const {
  absl::MutexLock lock(&mu_);
  for (const RowId id : ids.first(std::min(2 * kFetchedAhead, ids.size()))) rows_.Prefetch(id);
}

void RowBucket::FetchRows(absl::Span<const RowId> ids, size_t count) const {
  absl::MutexLock lock(&mu_);
  for (const RowId id : ids.first(std::min(kFetchedAhead, ids.size()))) {
    rows_.PrefetchRecord(id, count);
  }
}

size_t RowBucket::Read(uint64_t step, absl::Span<const RowId> ids,
                       absl::Span<float* const> to) const {
  std::vector<size_t> absent;
  std::vector<DiskRead> reads;
  {
    absl::MutexLock lock(&mu_);
    for (size_t i = 0; i < ids.size(); ++i) {
      const FoundRow found = Find(step, ids[i], shape_.width(), to[i]);
      if (found.as != StoredAs::kRow) absent.push_back(i);
      if (found.on_disk) reads.push_back({ids[i], found.touched, found.offset, to[i]});
    }
  }
  ReadFromDisk(step, shape_.width(), reads);
  for (const size_t i : absent) {
    InitializeRow(shape_.spec.initializer, shape_.initializer_key, ids[i], {to[i], shape_.width()});
  }
  return absent.size();
}

// What a later step has touched is as the history tells.
std::vector<RowId> RowBucket::IdsAt(uint64_t step, uint64_t after) const {
  std::vector<RowId> ids;
  {
    absl::MutexLock lock(&mu_);
    rows_.ForEach([&](RowId id, const FoundRow& row) {
      if (after < row.touched && row.touched <= step) ids.push_back(id);
      return true;
    });
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
  std::vector<DiskRead> reads;
  {
    absl::MutexLock lock(&mu_);
    for (size_t i = 0; i < ids.size(); ++i) {
      float* const to = elements.data() + i * size;
      found.push_back(Find(step, ids[i], size, to));
      const FoundRow& row = found.back();
      if (row.on_disk) reads.push_back({ids[i], row.touched, row.offset, to});
    }
  }
  ReadFromDisk(step, size, reads);
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
  const size_t rows = rows_.rows();
  most = std::min(most, rows);
  // Of those in memory, which are younger, as large a part as of all.
  const size_t in_memory = rows == 0 ? 0 : most * rows_.rows_in_memory() / rows;
  rows_.ForEach([&](RowId, const FoundRow& row) {
    if (row.as != StoredAs::kRow || ages.rows == (row.on_disk ? most : in_memory)) return false;
    ++ages.rows;
    ages.sum += step - std::min(step, row.touched);
    return true;
  });
  return ages;
}

RowGrowth RowBucket::CountNew(absl::Span<const RowId> ids) const {
  absl::MutexLock lock(&mu_);
  return rows_.CountNew(ids);
}

// ---- Memory and disk ----

// Only the thread that makes steps moves rows, so it reads records, and the disk, without the
// mutex.

void RowBucket::MakeRoomFor(const BucketSums& sums) {
  RowGrowth coming;
  uint64_t share = 0;
  {
    absl::MutexLock lock(&mu_);
    coming = rows_.CountNew(sums.ids());
    share = memory_.ShareOf(rows_.row_bytes());
  }
  SendToDisk(share, coming.rows + coming.returning, [&](RowId id) { return sums.Has(id); });
  TakeFromDisk(sums.ids());
}

void RowBucket::SendToDisk(uint64_t share, size_t more, absl::FunctionRef<bool(RowId)> stays) {
  BucketRows::Leaving leaving;
  {
    absl::MutexLock lock(&mu_);
    leaving = rows_.TakeOldest(share, more, stays);
  }
  if (leaving.rows.empty()) return;
  const absl::Status written = disk_.Write(leaving.rows);
  memory_.NoteWrite(written);
  absl::MutexLock lock(&mu_);
  if (!written.ok()) return rows_.Stay(leaving);
  rows_.Leave(leaving, share);
  rows_.Count();
}

void RowBucket::TakeFromDisk(absl::Span<const RowId> ids) {
  const size_t size = shape_.elements();
  for (; !ids.empty(); ids.remove_prefix(std::min(kAtOnce, ids.size()))) {
    std::vector<DiskRead> reads;
    {
      absl::MutexLock lock(&mu_);
      for (const RowId id : ids.first(std::min(kAtOnce, ids.size()))) {
        const FoundRow found = rows_.Find(id);
        if (found.on_disk) reads.push_back({id, found.touched, found.offset, nullptr});
      }
    }
    std::vector<float> elements(reads.size() * size);
    for (size_t i = 0; i < reads.size(); ++i) {
      DiskRead& row = reads[i];
      row.to = elements.data() + i * size;
      const absl::Status read = disk_.Read(row.offset, row.id, row.touched, {row.to, size});
      if (!read.ok()) EndWithoutRow(read);
    }
    absl::MutexLock lock(&mu_);
    for (const DiskRead& row : reads) {
      RowRecord* const record = rows_.Add(row.id);
      record->touched = row.touched;
      std::copy_n(row.to, size, record->elements());
    }
    rows_.Count();
  }
}

// Any thread may call this. The slot of a row may have another row by now. While the mutex is held
// it cannot.
void RowBucket::ReadFromDisk(uint64_t step, size_t count, absl::Span<const DiskRead> reads) const {
  for (const DiskRead& row : reads) {
    const absl::Span<float> to(row.to, count);
    if (disk_.Read(row.offset, row.id, row.touched, to).ok()) continue;
    absl::MutexLock lock(&mu_);
    const FoundRow found = Find(step, row.id, count, row.to);
    if (!found.on_disk) continue;
    const absl::Status read = disk_.Read(found.offset, row.id, found.touched, to);
    if (!read.ok()) EndWithoutRow(read);
  }
}

}  // namespace sluice
