// The ids that occur most often in a stream, in bounded memory.
//
// This is Space-Saving (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k
// Elements in Data Streams, 2005). It keeps a count for a fixed number of ids. An id that has none
// takes the place of the id with the lowest count, and begins there: so a count is never too low,
// and too high by at most what it began with. Of n ids in the stream and k counts, all ids that
// occur more than n / k times are kept.

#ifndef SLUICE_SERVER_TABLES_FREQUENT_IDS_H_
#define SLUICE_SERVER_TABLES_FREQUENT_IDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/tensor/table_spec.h"

namespace sluice {

// Externally synchronized.
class FrequentIds {
 public:
  struct Counted {
    RowId id = 0;
    uint64_t count = 0;
    uint64_t too_high = 0;  // by at most this
  };

  // Keeps that many counts, at least one.
  explicit FrequentIds(size_t counts) : most_(counts) {}

  void Add(RowId id);
  // The ids whose count is known to at least a half: at most `most`, the most frequent first.
  std::vector<Counted> Top(size_t most) const;

 private:
  size_t Lowest() const;

  const size_t most_;
  std::vector<Counted> counted_;
  absl::flat_hash_map<RowId, size_t> places_;  // in counted_
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_FREQUENT_IDS_H_
