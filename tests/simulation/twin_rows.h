// A table that repeats the first parameters of the vector: row r has those from r · width on. Both
// begin with 0, and each push brings the same gradients for both, without the rows in which all
// are 0. So the rows equal the parameters at every step, whatever happens, and what the oracle
// knows of the vector it knows of tables.

#ifndef SLUICE_TESTS_SIMULATION_TWIN_ROWS_H_
#define SLUICE_TESTS_SIMULATION_TWIN_ROWS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "server/aggregation/pending_push.h"
#include "server/snapshots/snapshot_store.h"
#include "tests/testing/vectors.h"

namespace sluice {

class TwinRows {
 public:
  // `vector`, with a twin table of rows of that width. Its first range has as many parameters.
  static Layout Add(const Layout& vector, uint32_t width);

  // `layout` is one that Add() made, or has no tables and so no rows. If `crowded`, all rows are in
  // a few buckets.
  TwinRows(const Layout& layout, uint32_t servers, bool crowded);

  // How many rows that server has, once all have been touched.
  uint64_t CountAt(uint32_t server) const;
  // Writes 0 where parameters have twins.
  void Clear(Values* parameters) const;
  // PushHeader::row_bytes of that gradient.
  uint64_t BytesOf(const Values& gradient) const;
  // Sends the rows of that server. Its part of the vector has `offset` elements.
  absl::Status Send(const Values& gradient, uint32_t server, uint64_t offset,
                    PendingPush& push) const;
  // The rows of the gradient that the first so many servers have, one after the other.
  Values Of(const Values& gradient, uint32_t servers) const;
  // What differs between the rows of all servers and the vector's parameters; empty: nothing.
  std::string Compare(absl::Span<const std::shared_ptr<const Snapshot>> servers,
                      const Values& vector) const;

 private:
  RowId IdOf(uint32_t row) const { return ids_->at(row); }
  uint32_t ServerOf(uint32_t row) const { return BucketOf(IdOf(row)) % servers_; }

  // The rows that are not 0 in the gradient, in the order of their ids.
  std::vector<uint32_t> RowsIn(const Values& gradient) const;

  uint32_t width_ = 0;
  uint32_t servers_;
  const std::vector<RowId>* const ids_;  // of rows
  std::vector<uint32_t> rows_;           // in the order of their ids
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_TWIN_ROWS_H_
