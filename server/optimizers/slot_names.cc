#include "server/optimizers/slot_names.h"

#include "server/optimizers/optimizer.h"

namespace sluice {

std::vector<std::vector<std::string>> RowSlotNames(const OptimizerConfig& config,
                                                   const Layout& layout) {
  std::vector<std::vector<std::string>> names;
  for (const TableSpec& table : layout.tables()) {
    names.emplace_back();
    const auto optimizer = MakeOptimizer({OptionsFor(config, table.name)}, table.width);
    for (const OptimizerSlot& slot : optimizer->slots()) names.back().emplace_back(slot.name);
  }
  return names;
}

}  // namespace sluice
