// The models with tables that sluice_train knows. README.md lists them.

#ifndef SLUICE_WORKER_TORCH_TABLE_MODELS_TABLE_MODELS_H_
#define SLUICE_WORKER_TORCH_TABLE_MODELS_TABLE_MODELS_H_

#include <memory>
#include <string>

#include "worker/torch/table_models/table_model.h"

namespace sluice {

enum class RowsAre { kOnServers, kInThisProcess };

// Makes a model that learns from the data of that name (worker/data/tables/load_table_data.h).
// LibTorch's generator (torch::manual_seed()) gives its parameters; the first values of rows are
// always the same. Throws std::invalid_argument for another name.
std::shared_ptr<TableModel> MakeTableModel(const std::string& name, RowsAre rows);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLE_MODELS_TABLE_MODELS_H_
