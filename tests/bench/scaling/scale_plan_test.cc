#include "tools/bench/scaling/scale_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ScalePlanTest, CountsTheVectorsOfServerAndWorkers) {
  EXPECT_EQ(NeededBytes(25000000, 1), (6 + 3) * 100000000u + 2 * 30000000u);
  EXPECT_EQ(NeededBytes(25000000, 4), (9 + 12) * uint64_t{100000000} + 5 * 30000000u);
}

TEST(ScalePlanTest, LeavesOutWhatDoesNotFitAndSaysSo) {
  const uint64_t memory = NeededBytes(25000000, 2);
  const ScalePlan plan = PlanScale(Row(), {1, 100}, {1, 2, 4, 8}, memory);
  ASSERT_THAT(plan.cells, SizeIs(6));
  EXPECT_EQ(plan.cells[3].workers, 8u);
  EXPECT_EQ(plan.cells[5].workers, 2u);
  EXPECT_EQ(plan.cells[5].elements, 25000000u);
  EXPECT_THAT(plan.skipped,
              ElementsAre("100.0 MB with 4, 8 workers: more than the 1.4 GB of memory"));
}

TEST(ScalePlanTest, HasEveryCellWhereThereIsRoom) {
  const ScalePlan plan = PlanScale(Row(), {1, 2}, {1, 2}, NeededBytes(500000, 2));
  EXPECT_THAT(plan.cells, SizeIs(4));
  EXPECT_THAT(plan.skipped, IsEmpty());
}

}  // namespace
}  // namespace sluice::bench
