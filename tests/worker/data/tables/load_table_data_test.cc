#include "worker/data/tables/load_table_data.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LoadTableDataTest, MakesTheSamplesThatTheTrainingLoopTakes) {
  const auto data = LoadTableData("matrix-factorization", "");
  ASSERT_THAT(data, IsOk());
  const TrainingSamples samples = SamplesOf(*data);
  EXPECT_EQ(samples.size, (*data)->size());
  EXPECT_EQ(samples.make({3}, 1, 0).targets, (*data)->MakeBatch({3}, 1, 0).targets);
}

TEST(LoadTableDataTest, RefusesWhatIsNoModelWithTables) {
  EXPECT_FALSE(IsTableModel("lenet"));
  EXPECT_THAT(LoadTableData("lenet", ""),
              HasCode(absl::StatusCode::kInvalidArgument,
                      AllOf(HasSubstr("\"lenet\""), HasSubstr("dlrm, matrix-factorization"))));
}

TEST(LoadTableDataTest, RefusesAFolderOfDataThatAreMade) {
  EXPECT_THAT(LoadTableData("dlrm", "/data"),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("--data-dir=/data")));
}

}  // namespace
}  // namespace sluice
