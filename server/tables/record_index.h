// Finds the records of one bucket by their ids, in little memory.
//
// A slot is a record's address, with a tag in its upper 16 bits: a part of the id's hash. The id
// itself is in the record. So a row takes about 11 bytes of the index, a record is found in one or
// two cache lines of it, and a record that is not the right one is hardly ever looked at. Slots are
// probed one after the other (linear probing; Knuth, The Art of Computer Programming, volume 3,
// section 6.4).

#ifndef SLUICE_SERVER_TABLES_RECORD_INDEX_H_
#define SLUICE_SERVER_TABLES_RECORD_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/table_spec.h"
#include "server/tables/record_pages.h"

namespace sluice {

// Externally synchronized. Does not own the records.
class RecordIndex {
 public:
  size_t size() const { return size_; }
  uint64_t bytes() const { return slots_.size() * sizeof(Slot); }
  // About how many bytes the index would take more with so many more records.
  uint64_t BytesFor(uint64_t more) const;

  // Null if no record has the id.
  RowRecord* Find(RowId id) const;
  // No record with its id is there yet.
  void Insert(RowRecord* record);
  // All of them are there.
  void Erase(absl::Span<RowRecord* const> records);

  // Ask for memory, so that Find() does not wait for it: of the slots where the search for the id
  // begins; and then of the record that Find() is likely to return, with its first `count`
  // elements.
  void Prefetch(RowId id) const;
  void PrefetchRecord(RowId id, size_t count) const;

  // Calls visit(RowRecord*) for each record, in no order, until it returns false.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const Slot slot : slots_) {
      if (slot != kEmpty && !visit(RecordOf(slot))) return;
    }
  }
  // Puts move(RowRecord*), which has the same id, in the place of each record.
  template <typename Move>
  void Replace(const Move& move) {
    std::vector<RowRecord*> records = Records();
    for (RowRecord*& record : records) record = move(record);
    Rebuild(records);
  }

 private:
  using Slot = uint64_t;
  static constexpr Slot kEmpty = 0;
  static constexpr int kAddressBits = 48;

  static RowRecord* RecordOf(Slot slot) {
    return reinterpret_cast<RowRecord*>(
        static_cast<uintptr_t>(slot & ((Slot{1} << kAddressBits) - 1)));
  }
  // With so many records there is a slot for each, and half as many that are empty.
  static size_t SlotsFor(size_t records) { return records + records / 2 + 8; }

  // Where the search for an id with this hash begins. There are slots.
  size_t Begin(uint64_t hash) const;
  size_t After(size_t at) const { return at + 1 == slots_.size() ? 0 : at + 1; }
  // The first record with the tag of `id` for which is_it(record); null if there is none.
  template <typename IsIt>
  RowRecord* FirstLike(RowId id, const IsIt& is_it) const;
  std::vector<RowRecord*> Records() const;
  size_t SlotOf(const RowRecord* record) const;  // also if slots before it were emptied
  void EraseOne(const RowRecord* record);
  // There is an empty slot.
  void Place(RowRecord* record);
  void Rebuild(const std::vector<RowRecord*>& records);

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_RECORD_INDEX_H_
