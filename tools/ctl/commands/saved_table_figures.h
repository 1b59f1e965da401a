// What people see of the tables of a checkpoint.

#ifndef SLUICE_TOOLS_CTL_COMMANDS_SAVED_TABLE_FIGURES_H_
#define SLUICE_TOOLS_CTL_COMMANDS_SAVED_TABLE_FIGURES_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/reading/checkpoint_place.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

struct TableFigures {
  std::string name;
  uint32_t width = 0;
  RowSlots slots;
  uint64_t rows = 0;
  uint64_t waiting = 0;  // ids that wait for their admission
  uint64_t bytes = 0;    // of the rows and their slots, as float32
};

nlohmann::ordered_json JsonOf(const TableFigures& table);

// The tables of the checkpoint at that place, in their order. It reads and checks all rows.
// DATA_LOSS says what is wrong with the files.
absl::StatusOr<std::vector<TableFigures>> TablesOf(const CheckpointPlace& place);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_COMMANDS_SAVED_TABLE_FIGURES_H_
