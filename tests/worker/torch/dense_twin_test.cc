#include "worker/torch/tables/dense_twin.h"

#include <vector>

#include "common/encoding/checksum.h"
#include "common/tensor/table_spec.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(DenseTwinTest, HasTheFirstValueOfEachRow) {
  TableSpec table;
  table.name = "items";
  table.width = 3;
  table.initializer = {RowInitializerKind::kNormal, 0.5F, 7};
  const torch::Tensor rows = FirstRows(table, 5);
  ASSERT_EQ(rows.sizes(), (std::vector<int64_t>{5, 3}));
  for (RowId id = 0; id < 5; ++id) {
    std::vector<float> row(3);
    InitializeRow(table.initializer, InitializerKey(table.initializer, Checksum("items")), id,
                  absl::MakeSpan(row));
    EXPECT_TRUE(torch::equal(rows[static_cast<int64_t>(id)], torch::tensor(row))) << id;
  }
}

}  // namespace
}  // namespace sluice
