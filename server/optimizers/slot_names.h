// The names of what optimizers remember of the rows of tables, for checkpoints. Pure functions; any
// thread may call them.

#ifndef SLUICE_SERVER_OPTIMIZERS_SLOT_NAMES_H_
#define SLUICE_SERVER_OPTIMIZERS_SLOT_NAMES_H_

#include <string>
#include <vector>

#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"

namespace sluice {

// For each table of the layout, the names of its rows' slots, in the order of Optimizer::slots().
// `config` is valid and fits the layout.
std::vector<std::vector<std::string>> RowSlotNames(const OptimizerConfig& config,
                                                   const Layout& layout);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_SLOT_NAMES_H_
