// TableMemory says how much memory the rows of tables may take on one server.

#ifndef SLUICE_SERVER_STATE_TABLE_MEMORY_H_
#define SLUICE_SERVER_STATE_TABLE_MEMORY_H_

#include <cstdint>
#include <limits>
#include <memory>

namespace sluice {

class RowDisk;

struct TableMemory {
  // Rows take at most so much memory, with their slots and the index.
  uint64_t most_bytes = std::numeric_limits<uint64_t>::max();
  // Where rows lie for which that is too little; null: pushes that would make more are refused.
  std::shared_ptr<RowDisk> disk;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_TABLE_MEMORY_H_
