#include "tools/bench/optimizer_race/optimizer_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const OptimizerRace kAdam = {"adam", {0.010, 0.020, 0.040}, {0.030, 0.040, 0.040}};

// The ratios are 3, 2 and 1: their median is not 40 / 20, by the medians of each side.
TEST(OptimizerTableTest, ShowsMediansAndExtremesInMilliseconds) {
  EXPECT_THAT(
      OptimizerTable({kAdam}),
      AllOf(HasSubstr("adam            |    20.000    10.000–   40.000 |    40.000    30.000–"),
            HasSubstr("2.00   1.00– 3.00\n")));
}

TEST(OptimizerTableTest, ShowsARaceWithoutAnOpponent) {
  const OptimizerRace lamb = {"lamb", {0.010}, {}};
  EXPECT_THAT(OptimizerTable({lamb}), HasSubstr("lamb            |    10.000"));
}

}  // namespace
}  // namespace sluice::bench
