#include "tests/soak/flatness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

Flatness JudgeValues(const std::vector<double>& values, Allowance allowance = {}) {
  const auto judged = Judge({"rss_mb", allowance, values});
  EXPECT_THAT(judged, IsOk());
  return judged.value_or(Flatness());
}

TEST(FlatnessTest, WhatStaysTheSameIsFlat) {
  const Flatness flatness = JudgeValues({5, 5, 5, 5, 5, 5, 5, 5});
  EXPECT_TRUE(flatness.flat);
  EXPECT_EQ(flatness.earlier, 5);
  EXPECT_EQ(flatness.later, 5);
  EXPECT_EQ(flatness.limit, 5);
}

TEST(FlatnessTest, WarmingUpInTheFirstQuarterDoesNotCount) {
  EXPECT_TRUE(JudgeValues({1, 2, 5, 5, 5, 5, 5, 5}).flat);
}

TEST(FlatnessTest, ComparesTheLastQuarterWithTheSecond) {
  const Flatness flatness = JudgeValues({0, 0, 0, 1, 2, 3, 9, 9, 9, 4, 5, 6});
  EXPECT_EQ(flatness.earlier, 2);
  EXPECT_EQ(flatness.later, 5);
  EXPECT_FALSE(flatness.flat);
}

TEST(FlatnessTest, WhatGrowsSteadilyIsNotFlat) {
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) values.push_back(100 + i);
  const Flatness flatness = JudgeValues(values, {1.05, 4});
  EXPECT_EQ(flatness.earlier, 122);
  EXPECT_EQ(flatness.later, 152);
  EXPECT_FALSE(flatness.flat);
}

TEST(FlatnessTest, AnOutlierInTheLastQuarterDoesNotCount) {
  EXPECT_TRUE(JudgeValues({5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 90, 5}).flat);
}

TEST(FlatnessTest, TheLaterMedianMayBeWhatIsAllowedAndNoMore) {
  EXPECT_TRUE(JudgeValues({5, 10, 10, 16}, {1.5, 1}).flat);
  EXPECT_FALSE(JudgeValues({5, 10, 10, 16.5}, {1.5, 1}).flat);
}

TEST(FlatnessTest, FewerThanFourValuesAreNotJudged) {
  EXPECT_THAT(Judge({"rss_mb", {}, {1, 1, 1}}),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("rss_mb was measured 3 times, expected 4 or more")));
}

TEST(FlatnessTest, IsDescribedInALine) {
  const Course course = {"threads", {1, 4}, {8, 9, 9, 20}};
  EXPECT_EQ(Describe(course, *Judge(course)),
            "threads: 9 in the second quarter, 20 in the last, at most 13 allowed: NOT FLAT");
}

}  // namespace
}  // namespace sluice
