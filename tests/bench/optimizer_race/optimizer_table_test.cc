#include "tools/bench/optimizer_race/optimizer_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const OptimizerRace kAdam = {"adam", {0.010, 0.020, 0.040}, {0.030, 0.040, 0.040}};

TEST(OptimizerTableTest, ShowsMediansAndExtremesInMilliseconds) {
  EXPECT_THAT(
      OptimizerTable({kAdam}),
      AllOf(HasSubstr("adam            |    20.000    10.000–   40.000 |    40.000    30.000–"),
            HasSubstr("2.00   1.00– 3.00\n")));
}

// The ratios are 1, 3 and 1, of which the median is 1. The medians of each side give 4 / 2.
TEST(OptimizerTableTest, ShowsTheMedianOfTheRatios) {
  const OptimizerRace race = {"x", {0.001, 0.002, 0.004}, {0.001, 0.006, 0.004}};
  EXPECT_THAT(OptimizerTable({race}), HasSubstr("1.00   1.00– 3.00\n"));
}

TEST(OptimizerTableTest, ShowsARaceWithoutAnOpponent) {
  const OptimizerRace lamb = {"lamb", {0.010}, {}};
  EXPECT_THAT(OptimizerTable({lamb}), HasSubstr("lamb            |    10.000"));
}

}  // namespace
}  // namespace sluice::bench
