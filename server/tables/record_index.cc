#include "server/tables/record_index.h"

#include <glog/logging.h>

#include "absl/numeric/int128.h"
#include "common/base/random.h"

namespace sluice {
namespace {

constexpr int kTagBits = 16;
// Records whose memory is asked for ahead of their use.
constexpr size_t kRecordsAhead = 16;
// Where at least this part of the records is erased, the others are placed anew.
constexpr size_t kManyErased = 8;

// Another number in each process, so nobody can choose ids whose searches begin at one slot.
uint64_t Secret() {
  static const uint64_t secret = RandomNonce().value();
  return secret;
}

// Not MixId(id): its upper bits are the same for all ids of a bucket.
uint64_t HashOf(RowId id) { return MixId(id ^ Secret()); }

uint64_t TagOf(uint64_t hash) { return hash & ((uint64_t{1} << kTagBits) - 1); }

// Whether so many records are too many for the slots: they would fill more than 4/5.
bool IsFull(size_t records, size_t slots) { return 5 * records > 4 * slots; }

}  // namespace

// The tag has the low bits of the hash, the place the high ones.
size_t RecordIndex::Begin(uint64_t hash) const {
  return static_cast<size_t>(absl::Uint128High64(absl::uint128(hash) * slots_.size()));
}

uint64_t RecordIndex::BytesFor(uint64_t more) const {
  if (!IsFull(size_ + more, slots_.size())) return 0;
  return (SlotsFor(size_ + more) - slots_.size()) * sizeof(Slot);
}

template <typename IsIt>
RowRecord* RecordIndex::FirstLike(RowId id, const IsIt& is_it) const {
  if (size_ == 0) return nullptr;
  const uint64_t hash = HashOf(id);
  for (size_t at = Begin(hash); slots_[at] != kEmpty; at = After(at)) {
    if (slots_[at] >> kAddressBits != TagOf(hash)) continue;
    if (is_it(*RecordOf(slots_[at]))) return RecordOf(slots_[at]);
  }
  return nullptr;
}

RowRecord* RecordIndex::Find(RowId id) const {
  return FirstLike(id, [id](const RowRecord& record) { return record.id == id; });
}

void RecordIndex::Prefetch(RowId id) const {
  if (size_ > 0) __builtin_prefetch(slots_.data() + Begin(HashOf(id)));
}

void RecordIndex::PrefetchRecord(RowId id, size_t count) const {
  const RowRecord* const record = FirstLike(id, [](const RowRecord&) { return true; });
  if (record != nullptr) record->Prefetch(count);
}

std::vector<RowRecord*> RecordIndex::Records() const {
  std::vector<RowRecord*> records;
  records.reserve(size_);
  for (const Slot slot : slots_) {
    if (slot != kEmpty) records.push_back(RecordOf(slot));
  }
  return records;
}

void RecordIndex::Insert(RowRecord* record) {
  if (IsFull(size_ + 1, slots_.size())) Rebuild(Records());
  Place(record);
  ++size_;
}

size_t RecordIndex::SlotOf(const RowRecord* record) const {
  size_t at = Begin(HashOf(record->id));
  while (RecordOf(slots_[at]) != record) at = After(at);
  return at;
}

void RecordIndex::Erase(absl::Span<RowRecord* const> records) {
  if (kManyErased * records.size() < size_) {
    for (const RowRecord* record : records) EraseOne(record);
  } else if (!records.empty()) {
    for (const RowRecord* record : records) slots_[SlotOf(record)] = kEmpty;
    Rebuild(Records());
  }
}

// Algorithm R of the same section: a record moves into the empty slot if its search begins there or
// before it.
void RecordIndex::EraseOne(const RowRecord* record) {
  size_t empty = SlotOf(record);
  for (size_t at = After(empty); slots_[at] != kEmpty; at = After(at)) {
    const size_t begin = Begin(HashOf(RecordOf(slots_[at])->id));
    const bool stays = empty < at ? empty < begin && begin <= at : empty < begin || begin <= at;
    if (stays) continue;
    slots_[empty] = slots_[at];
    empty = at;
  }
  slots_[empty] = kEmpty;
  --size_;
  if (slots_.size() > 2 * SlotsFor(size_)) Rebuild(Records());
}

void RecordIndex::Place(RowRecord* record) {
  const auto address = reinterpret_cast<uintptr_t>(record);
  CHECK_EQ(address >> kAddressBits, 0) << "an address has more than " << kAddressBits << " bits";
  const uint64_t hash = HashOf(record->id);
  size_t at = Begin(hash);
  while (slots_[at] != kEmpty) at = After(at);
  slots_[at] = TagOf(hash) << kAddressBits | address;
}

void RecordIndex::Rebuild(const std::vector<RowRecord*>& records) {
  slots_ = std::vector<Slot>(SlotsFor(records.size()), kEmpty);
  size_ = records.size();
  for (size_t i = 0; i < records.size(); ++i) {
    if (i + kRecordsAhead < records.size()) __builtin_prefetch(records[i + kRecordsAhead]);
    Place(records[i]);
  }
}

}  // namespace sluice
