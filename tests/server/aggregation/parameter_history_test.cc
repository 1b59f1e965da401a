#include "server/aggregation/parameter_history.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::DoubleNear;

TEST(ParameterHistoryTest, TheGapIsOnePlusTheDistanceInMeanSteps) {
  ParameterHistory history{ParameterSample(LayoutOf({{"w", 2}}))};
  history.Add(Values{0, 0}, 0);
  EXPECT_EQ(history.GapSince(0), 1);
  history.Add(Values{3, 4}, 0);  // a step of length 5
  EXPECT_EQ(history.GapSince(0), 1);
  EXPECT_EQ(history.GapSince(1), 2);
  history.Add(Values{3, 5}, 0);  // of length 1: the mean is 3
  EXPECT_DOUBLE_EQ(history.GapSince(1), 1 + 1 / 3.0);
  EXPECT_DOUBLE_EQ(history.GapSince(2), 1 + std::sqrt(34) / 3);
}

TEST(ParameterHistoryTest, ParametersThatCameBackHaveNoGap) {
  ParameterHistory history{ParameterSample(LayoutOf({{"w", 1}}))};
  for (const float x : {0.0f, 1.0f, 0.0f}) history.Add(Values{x}, 0);
  EXPECT_EQ(history.GapSince(2), 1);
  EXPECT_EQ(history.GapSince(1), 2);
}

TEST(ParameterHistoryTest, StatisticsAreNoDistance) {
  ParameterHistory history{
      ParameterSample(LayoutOf({{"w", 1}, {"mean", 1, RangeKind::kStatistic}, {"b", 1}}))};
  history.Add(Values{0, 0, 0}, 0);
  history.Add(Values{0, 1000, 2}, 0);
  history.Add(Values{0, 9000, 4}, 0);
  EXPECT_EQ(history.GapSince(2), 3);
}

TEST(ParameterHistoryTest, WhatIsOlderThanItsBeginningIsAsOldAsThat) {
  ParameterHistory history{ParameterSample(LayoutOf({{"w", 1}}))};
  EXPECT_TRUE(history.empty());
  EXPECT_EQ(history.GapSince(7), 1);
  EXPECT_EQ(history.DecaysSince(7), 0);
  history.Add(Values{0}, 4);
  history.Add(Values{1}, 5);
  EXPECT_EQ(history.GapSince(1'000'000), 2);
  EXPECT_EQ(history.DecaysSince(1'000'000), 1);
}

TEST(ParameterHistoryTest, KeepsItsLatestSteps) {
  ParameterHistory history{ParameterSample(LayoutOf({{"w", 1}}))};
  for (size_t i = 0; i <= ParameterHistory::kSteps; ++i) {
    history.Add(Values{static_cast<float>(i)}, i);
  }
  const uint64_t oldest = ParameterHistory::kSteps - 1;
  EXPECT_EQ(history.GapSince(oldest), 1.0 + static_cast<double>(oldest));
  EXPECT_EQ(history.GapSince(oldest + 1), 1.0 + static_cast<double>(oldest));
  EXPECT_EQ(history.DecaysSince(oldest), oldest);
}

// Every parameter of a large model moves alike, so a sample sees the true ratio.
TEST(ParameterHistoryTest, ASampleOfALargeModelGivesTheSameGap) {
  const uint32_t size = 10 * ParameterSample::kSize + 17;
  ParameterHistory history{ParameterSample(LayoutOf({{"w", size}}))};
  for (const float x : {0.0f, 1.0f, 2.0f, 3.0f}) history.Add(Values(size, x), 0);
  EXPECT_THAT(history.GapSince(3), DoubleNear(4, 1e-12));
}

// One moved parameter in each place in turn: the share of those that are noticed is the sample's.
TEST(ParameterHistoryTest, TheSampleIsSpreadOverTheWholeModel) {
  const uint32_t size = 64 * 1024;
  for (uint32_t begin = 0; begin < size; begin += size / 16) {
    ParameterHistory history{ParameterSample(LayoutOf({{"w", size}}))};
    Values moved(size, 0);
    history.Add(moved, 0);
    for (uint32_t i = begin; i < begin + size / 16; ++i) moved[i] = 1;
    history.Add(moved, 0);
    EXPECT_EQ(history.GapSince(1), 2) << "elements from " << begin;
  }
}

}  // namespace
}  // namespace sluice
