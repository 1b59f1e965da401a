// What the rows of tables on one server may take.

#ifndef SLUICE_SERVER_STATE_TABLE_MEMORY_H_
#define SLUICE_SERVER_STATE_TABLE_MEMORY_H_

#include <cstdint>
#include <limits>
#include <memory>

namespace sluice {

class RowDisk;

struct TableMemory {
  // Of memory, with slots and index.
  uint64_t most_bytes = std::numeric_limits<uint64_t>::max();
  // Where rows lie for which that is too little; null: pushes that would make more are refused.
  std::shared_ptr<RowDisk> disk;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_TABLE_MEMORY_H_
