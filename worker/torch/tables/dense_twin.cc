#include "worker/torch/tables/dense_twin.h"

#include "absl/types/span.h"
#include "common/encoding/checksum.h"
#include "worker/torch/tables/floats.h"

namespace sluice {

torch::Tensor FirstRows(const TableSpec& table, int64_t rows) {
  const uint64_t key = InitializerKey(table.initializer, Checksum(table.name));
  torch::Tensor values = Floats({rows, int64_t{table.width}});
  for (int64_t id = 0; id < rows; ++id) {
    float* const row = values.data_ptr<float>() + id * table.width;
    InitializeRow(table.initializer, key, static_cast<RowId>(id), {row, table.width});
  }
  return values;
}

}  // namespace sluice
