#include "tools/bench/optimizer_race/optimizer_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

OptimizerRace Adam(double at_least) {
  return {"adam", at_least, {0.010, 0.020, 0.040}, {0.030, 0.040, 0.040}};
}

// 3, 2 and 1: not 40 / 20, by the medians of each side.
TEST(OptimizerTableTest, TakesTheMedianOfThePairsRatios) {
  EXPECT_DOUBLE_EQ(RatioOf(Adam(0)), 2);
  EXPECT_DOUBLE_EQ(RatioOf({"x", 0, {1, 2, 4}, {1, 6, 4}}), 1);
}

TEST(OptimizerTableTest, ShowsMediansAndExtremesInMilliseconds) {
  EXPECT_THAT(
      OptimizerTable({Adam(0)}),
      AllOf(HasSubstr("adam            |    20.000    10.000–   40.000 |    40.000    30.000–"),
            HasSubstr("2.00   1.00– 3.00"), Not(HasSubstr("at least"))));
}

TEST(OptimizerTableTest, TellsWhetherAGoalIsMet) {
  EXPECT_THAT(OptimizerTable({Adam(2)}), HasSubstr("at least 2.0: met"));
  EXPECT_THAT(OptimizerTable({Adam(2.5)}), HasSubstr("at least 2.5: MISSED"));
  EXPECT_EQ(CountMissed({Adam(2), Adam(2.5), Adam(0), Adam(3)}), 2u);
}

TEST(OptimizerTableTest, ShowsARaceWithoutAnOpponent) {
  const OptimizerRace lamb = {"lamb", 1, {0.010}, {}};
  EXPECT_THAT(OptimizerTable({lamb}), HasSubstr("lamb            |    10.000"));
  EXPECT_EQ(CountMissed({lamb}), 0u);
}

}  // namespace
}  // namespace sluice::bench
