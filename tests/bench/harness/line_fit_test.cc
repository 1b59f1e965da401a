#include "tools/bench/harness/line_fit.h"

#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

TEST(LineFitTest, FindsTheLineThatThePointsAreOn) {
  const auto line = FitLine({{1, 5}, {2, 8}, {8, 26}});
  ASSERT_TRUE(line.has_value());
  EXPECT_DOUBLE_EQ(line->slope, 3);
  EXPECT_DOUBLE_EQ(line->intercept, 2);
  EXPECT_DOUBLE_EQ(line->explained, 1);
}

// By hand: means 1 and 2; sums of squares xx = 2, xy = 2, yy = 8.
TEST(LineFitTest, HasTheLeastSquares) {
  const auto line = FitLine({{0, 2}, {1, 0}, {2, 4}});
  ASSERT_TRUE(line.has_value());
  EXPECT_DOUBLE_EQ(line->slope, 1);
  EXPECT_DOUBLE_EQ(line->intercept, 1);
  EXPECT_DOUBLE_EQ(line->explained, 2.0 * 2 / (2 * 8));
}

TEST(LineFitTest, OfEqualValuesIsLevel) {
  const auto line = FitLine({{1, 7}, {4, 7}});
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->slope, 0);
  EXPECT_EQ(line->intercept, 7);
  EXPECT_EQ(line->explained, 1);
}

TEST(LineFitTest, NeedsTwoDifferentPlaces) {
  EXPECT_FALSE(FitLine({}).has_value());
  EXPECT_FALSE(FitLine({{2, 1}}).has_value());
  EXPECT_FALSE(FitLine({{2, 1}, {2, 3}}).has_value());
}

}  // namespace
}  // namespace sluice::bench
