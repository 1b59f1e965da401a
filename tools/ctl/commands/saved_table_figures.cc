#include "tools/ctl/commands/saved_table_figures.h"

#include "common/storage/file_system.h"
#include "server/durable/checkpoint/whole_checkpoint.h"
#include "server/durable/rows/saved_tables.h"

namespace sluice {

nlohmann::ordered_json JsonOf(const TableFigures& table) {
  return {{"name", table.name}, {"width", table.width},     {"slots", table.slots},
          {"rows", table.rows}, {"waiting", table.waiting}, {"bytes", table.bytes}};
}

absl::StatusOr<std::vector<TableFigures>> TablesOf(const CheckpointPlace& place) {
  const auto checkpoint = ReadRowsOfCheckpoint(RealFileSystem(), place);
  if (!checkpoint.ok()) return checkpoint.status();
  const std::vector<TableSpec>& specs = checkpoint->layout->tables();
  std::vector<TableFigures> tables;
  if (specs.empty()) return tables;
  const auto counts = CountRows(*checkpoint->rows, specs.size());
  if (!counts.ok()) return counts.status();
  for (size_t i = 0; i < specs.size(); ++i) {
    const RowFigures& count = (*counts)[i];
    tables.push_back({specs[i].name, specs[i].width, checkpoint->row_slots[i], count.rows,
                      count.waiting, count.elements * sizeof(float)});
  }
  return tables;
}

}  // namespace sluice
