// A job whose rows take nearly twice the memory that there is for them, for tests of the disk.

#ifndef SLUICE_TESTS_SERVER_TABLES_LARGE_TABLES_H_
#define SLUICE_TESTS_SERVER_TABLES_LARGE_TABLES_H_

#include <random>
#include <vector>

#include "tests/server/tables/table_world.h"

namespace sluice {

inline constexpr RowId kIds = 20'000;
inline constexpr uint64_t kLittle = 1'100'000;  // bytes; all rows take nearly twice as much

inline std::vector<TableSpec> LargeTables() {
  TableSpec items = TableOf("items", 8);
  items.initializer = {RowInitializerKind::kNormal, 1, 5};
  items.admit_after = 2;
  items.evict_after = 40;
  TableSpec users = TableOf("users", 4);
  users.initializer = {RowInitializerKind::kUniform, 1, 5};
  return {items, users};
}

// Pushes some of all rows, and a few again and again. The same for the same number.
inline void TrainLarge(uint32_t number, TableWorld& world) {
  std::mt19937 engine(number);
  std::vector<RowIds> ids = {{0, {}}, {1, {}}};
  for (RowId id = 0; id < kIds; ++id) {
    if (id < 100 || engine() % 16 == 0) ids[id % 2].ids.push_back(id);
  }
  Values values(ids[0].ids.size() * 8 + ids[1].ids.size() * 4);
  for (float& value : values) value = static_cast<float>(engine() % 1000) / 500 - 1;
  world.Push(ids, values);
  world.MakeStep();
}

inline std::vector<RowId> AllIds() {
  std::vector<RowId> ids(kIds);
  for (RowId id = 0; id < kIds; ++id) ids[id] = id;
  return ids;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_SERVER_TABLES_LARGE_TABLES_H_
