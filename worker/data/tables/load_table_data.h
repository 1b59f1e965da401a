// The models with tables that sluice_train knows by name, and the data that each learns from.

#ifndef SLUICE_WORKER_DATA_TABLES_LOAD_TABLE_DATA_H_
#define SLUICE_WORKER_DATA_TABLES_LOAD_TABLE_DATA_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/tables/table_data.h"
#include "worker/data/training_samples.h"

namespace sluice {

// "dlrm", "matrix-factorization" and "wordnet".
std::vector<std::string> TableModelNames();
bool IsTableModel(const std::string& name);

// Makes or reads the data of that model: click_data.h, cell_data.h, triple_data.h. `folder` is for
// wordnet; empty: where Debian's package puts it. INVALID_ARGUMENT for another name, for a folder
// of data that are made, and for a folder without WordNet.
absl::StatusOr<std::shared_ptr<const TableData>> LoadTableData(const std::string& model,
                                                               const std::string& folder);

// What the training loop takes.
TrainingSamples SamplesOf(std::shared_ptr<const TableData> data);

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_TABLES_LOAD_TABLE_DATA_H_
