// What a table has on one server, or on all: what ListTables and the metrics show.

#ifndef SLUICE_SERVER_STATE_TABLE_STATUS_H_
#define SLUICE_SERVER_STATE_TABLE_STATUS_H_

#include <cstdint>
#include <tuple>

namespace sluice {

// A plain value. The last two count since the server started.
struct TableStatus {
  uint64_t rows = 0;
  uint64_t waiting = 0;  // ids that wait for their admission
  uint64_t bytes = 0;    // of memory, with slots and the index
  uint64_t dropped = 0;  // gradients of rows that waited
  uint64_t removed = 0;  // rows that were removed because nothing touched them

  auto Fields() const { return std::tie(rows, waiting, bytes, dropped, removed); }
  bool operator==(const TableStatus& other) const { return Fields() == other.Fields(); }
};

// The sum over two servers.
inline TableStatus operator+(const TableStatus& a, const TableStatus& b) {
  return {a.rows + b.rows, a.waiting + b.waiting, a.bytes + b.bytes, a.dropped + b.dropped,
          a.removed + b.removed};
}

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_TABLE_STATUS_H_
