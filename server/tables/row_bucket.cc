#include "server/tables/row_bucket.h"

#include <algorithm>

#include "common/base/little_endian.h"
#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

// Rows whose memory is asked for ahead of their use.
constexpr size_t kAhead = 4;

// Only the first lines: the processor goes on by itself.
void Prefetch(const RowRecord* record) {
  __builtin_prefetch(record);
  if (record != nullptr) __builtin_prefetch(record->elements() + 14);
}

// Computes the rows of one bucket. It needs no lock: nobody but the caller changes records.
class RowComputer {
 public:
  RowComputer(const RowShape& shape, const RowRule& rule)
      : shape_(shape), rule_(rule), first_(shape.width()), mean_(shape.width()) {}

  // Returns whether the row `next` is finite.
  bool Compute(const PastRow& row, absl::Span<const float> sum, float share,
               absl::Span<float> next) {
    RowPiece piece;
    piece.width = shape_.width();
    piece.fresh = row.record == nullptr;
    piece.sum = Mean(sum, share);
    piece.current = piece.fresh ? First(row.id) : row.record->elements();
    piece.next = next.data();
    rule_.optimizer->Apply(piece);
    return !FindNotFinite(AsPiece(next)).has_value();
  }

 private:
  const float* First(RowId id) {
    InitializeRow(shape_.spec.initializer, shape_.initializer_key, id, absl::MakeSpan(first_));
    return first_.data();
  }

  const float* Mean(absl::Span<const float> sum, float share) {
    if (!rule_.row_scale.has_value()) return sum.data();
    DivideTo(sum, share * *rule_.row_scale, absl::MakeSpan(mean_));
    return mean_.data();
  }

  const RowShape& shape_;
  const RowRule& rule_;
  std::vector<float> first_;
  std::vector<float> mean_;
};

// Gives each row that has elements its place. Returns the sum of their sizes.
size_t PlaceRows(size_t elements, std::vector<PastRow>& rows) {
  size_t end = 0;
  for (PastRow& row : rows) {
    if (!row.becomes_row && row.before != StoredAs::kRow) continue;
    row.at = end;
    end += elements;
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

// Adds the change of a number since it was counted last.
void CountChange(uint64_t now, uint64_t& counted, std::atomic<uint64_t>& sum) {
  sum.fetch_add(now - counted, std::memory_order_relaxed);
  counted = now;
}

}  // namespace

RowBucket::RowBucket(const RowShape& shape, uint64_t key, const RowHistory& history,
                     RowCounts& counts)
    : shape_(shape), key_(key), history_(history), counts_(counts), pages_(shape.elements()) {}

void RowBucket::Load(const StoredRow& row) {
  absl::MutexLock lock(&mu_);
  if (row.touches > 0) {
    waiting_[row.id] = {row.touches, row.touched.value()};
  } else {
    RowRecord*& record = rows_[row.id];
    if (record == nullptr) record = pages_.Allocate();
    record->touched = row.touched.value();
    std::copy(row.elements.begin(), row.elements.end(), record->elements());
  }
  Count();
}

std::vector<PastRow> RowBucket::Touched(const BucketSums& sums,
                                        const std::vector<uint32_t>& order) const {
  std::vector<PastRow> rows(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    PastRow& row = rows[i];
    row.id = sums.id(order[i]);
    const auto record = rows_.find(row.id);
    if (record != rows_.end()) {
      row.before = StoredAs::kRow;
      row.record = record->second;
      row.becomes_row = true;
      continue;
    }
    const auto waiting = waiting_.find(row.id);
    if (waiting != waiting_.end()) {
      row.before = StoredAs::kWaiting;
      row.touches = waiting->second.touches;
    }
    row.becomes_row = shape_.Admits(row.touches);
  }
  return rows;
}

std::unique_ptr<PastRows> RowBucket::Prepare(const BucketSums& sums, const RowRule& rule,
                                             absl::optional<RowId>* bad) const {
  auto past = std::make_unique<PastRows>(key_, shape_.elements());
  const std::vector<uint32_t> order = sums.Order();
  {
    absl::MutexLock lock(&mu_);
    past->rows = Touched(sums, order);
  }
  past->floats = FloatBuffer(PlaceRows(shape_.elements(), past->rows));
  RowComputer computer(shape_, rule);
  for (size_t i = 0; i < order.size(); ++i) {
    const PastRow& row = past->rows[i];
    if (i + kAhead < order.size()) Prefetch(past->rows[i + kAhead].record);
    if (!row.becomes_row) continue;
    const absl::Span<float> next = past->floats.span().subspan(row.at, shape_.elements());
    const bool finite = computer.Compute(row, sums.sum(order[i]), sums.share(order[i]), next);
    if (finite) continue;
    *bad = row.id;
    break;
  }
  return past;
}

void RowBucket::MakeRow(uint64_t step, PastRow& row, float* elements) {
  if (row.record != nullptr) {
    row.touched = row.record->touched;
    std::swap_ranges(elements, elements + shape_.elements(), row.record->elements());
  } else {
    row.record = rows_[row.id] = pages_.Allocate();
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

void RowBucket::Make(uint64_t step, PastRows& rows, Checksummer* checksum) {
  absl::MutexLock lock(&mu_);
  for (PastRow& row : rows.rows) {
    row.becomes_row ? MakeRow(step, row, rows.floats.from(row.at)) : MakeWait(step, row);
    if (checksum != nullptr) {
      const float* const made = row.becomes_row ? row.record->elements() : nullptr;
      AddTo(*checksum, row, made, shape_.elements());
    }
    row.record = nullptr;
  }
  rows.made = true;
  Count();
}

std::vector<PastRow> RowBucket::TakeOld(uint64_t step) {
  const auto is_old = [&](uint64_t touched) {
    return step > touched && step - touched > shape_.spec.evict_after;
  };
  std::vector<PastRow> old;
  absl::erase_if(rows_, [&](const auto& entry) {
    RowRecord* const record = entry.second;
    if (!is_old(record->touched)) return false;
    old.push_back({entry.first, StoredAs::kRow, false, 0, record->touched, 0, record});
    return true;
  });
  absl::erase_if(waiting_, [&](const auto& entry) {
    const Waiting& waiting = entry.second;
    if (!is_old(waiting.touched)) return false;
    old.push_back(
        {entry.first, StoredAs::kWaiting, false, waiting.touches, waiting.touched, 0, nullptr});
    return true;
  });
  std::sort(old.begin(), old.end(), [](const PastRow& a, const PastRow& b) { return a.id < b.id; });
  return old;
}

void RowBucket::Evict(uint64_t step, PastRows& rows) {
  absl::MutexLock lock(&mu_);
  rows.rows = TakeOld(step);
  rows.floats = FloatBuffer(PlaceRows(shape_.elements(), rows.rows));
  for (PastRow& row : rows.rows) {
    removed_.push_back({step, row.id});
    if (row.record == nullptr) continue;
    std::copy_n(row.record->elements(), shape_.elements(), rows.floats.from(row.at));
    pages_.Free(row.record);
    row.record = nullptr;
    counts_.removed.fetch_add(1, std::memory_order_relaxed);
  }
  rows.made = true;
  Count();
}

void RowBucket::ForgetRemovals(uint64_t until) {
  absl::MutexLock lock(&mu_);
  const auto first = std::find_if(removed_.begin(), removed_.end(),
                                  [&](const Removed& removed) { return removed.step > until; });
  removed_.erase(removed_.begin(), first);
}

void RowBucket::Count() {
  CountChange(rows_.size(), counted_rows_, counts_.rows);
  CountChange(waiting_.size(), counted_waiting_, counts_.waiting);
  const uint64_t index = rows_.capacity() * (sizeof(std::pair<RowId, RowRecord*>) + 1) +
                         waiting_.capacity() * (sizeof(std::pair<RowId, Waiting>) + 1);
  CountChange(pages_.bytes() + index, counted_bytes_, counts_.bytes);
}

// ---- Reading ----

FoundRow RowBucket::Find(uint64_t step, RowId id, size_t count, float* to) const {
  const auto row = rows_.find(id);
  if (row != rows_.end() && row->second->touched <= step) {
    std::copy_n(row->second->elements(), count, to);
    return {StoredAs::kRow, row->second->touched, 0};
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

void RowBucket::Read(uint64_t step, absl::Span<const WantedRow> rows) const {
  std::vector<WantedRow> absent;
  {
    absl::MutexLock lock(&mu_);
    for (const WantedRow& row : rows) {
      const FoundRow found = Find(step, row.id, shape_.width(), row.to);
      if (found.as != StoredAs::kRow) absent.push_back(row);
    }
  }
  for (const WantedRow& row : absent) {
    InitializeRow(shape_.spec.initializer, shape_.initializer_key, row.id,
                  {row.to, shape_.width()});
  }
}

std::vector<RowId> RowBucket::IdsAt(uint64_t step) const {
  std::vector<RowId> ids;
  {
    absl::MutexLock lock(&mu_);
    ids.reserve(rows_.size() + waiting_.size());
    for (const auto& row : rows_) ids.push_back(row.first);
    for (const auto& waiting : waiting_) ids.push_back(waiting.first);
    history_.AppendIds(step, key_, &ids);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::vector<FoundRow> RowBucket::FindAt(uint64_t step, absl::Span<const RowId> ids,
                                        absl::Span<float> elements) const {
  std::vector<FoundRow> found;
  found.reserve(ids.size());
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t size = shape_.elements();
    found.push_back(Find(step, ids[i], size, elements.data() + i * size));
  }
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

std::pair<uint64_t, uint64_t> RowBucket::CountNew(absl::Span<const RowId> ids) const {
  uint64_t rows = 0;
  uint64_t waiting = 0;
  absl::MutexLock lock(&mu_);
  for (const RowId id : ids) {
    if (rows_.contains(id)) continue;
    const auto waits = waiting_.find(id);
    const uint32_t touches = waits == waiting_.end() ? 0 : waits->second.touches;
    if (shape_.Admits(touches)) {
      ++rows;
    } else if (touches == 0) {
      ++waiting;
    }
  }
  return {rows, waiting};
}

}  // namespace sluice
