// A table as a tensor, for a baseline in one process.

#ifndef SLUICE_WORKER_TORCH_TABLES_DENSE_TWIN_H_
#define SLUICE_WORKER_TORCH_TABLES_DENSE_TWIN_H_

#include <torch/torch.h>

#include <cstdint>

#include "common/tensor/table_spec.h"

namespace sluice {

// The first values of rows 0 to rows − 1, [rows, width] float32: the weight of a
// torch::nn::Embedding that begins as the table does. `table.name` is part of what the values
// depend on.
torch::Tensor FirstRows(const TableSpec& table, int64_t rows);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLES_DENSE_TWIN_H_
