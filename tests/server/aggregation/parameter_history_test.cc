#include "server/aggregation/parameter_history.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

TEST(ParameterHistoryTest, TheGapIsOnePlusTheDistanceInMeanSteps) {
  ParameterHistory history;
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
  ParameterHistory history;
  for (const float x : {0.0f, 1.0f, 0.0f}) history.Add(Values{x}, 0);
  EXPECT_EQ(history.GapSince(2), 1);
  EXPECT_EQ(history.GapSince(1), 2);
}

TEST(ParameterHistoryTest, WhatIsOlderThanItsBeginningIsAsOldAsThat) {
  ParameterHistory history;
  EXPECT_TRUE(history.empty());
  EXPECT_EQ(history.GapSince(7), 1);
  EXPECT_EQ(history.DecaysSince(7), 0);
  history.Add(Values{0}, 4);
  history.Add(Values{1}, 5);
  EXPECT_EQ(history.GapSince(1'000'000), 2);
  EXPECT_EQ(history.DecaysSince(1'000'000), 1);
}

TEST(ParameterHistoryTest, KeepsItsLatestSteps) {
  ParameterHistory history;
  for (size_t i = 0; i <= ParameterHistory::kSteps; ++i) {
    history.Add(Values{static_cast<float>(i)}, i);
  }
  const uint64_t oldest = ParameterHistory::kSteps - 1;
  EXPECT_EQ(history.GapSince(oldest), 1.0 + static_cast<double>(oldest));
  EXPECT_EQ(history.GapSince(oldest + 1), 1.0 + static_cast<double>(oldest));
  EXPECT_EQ(history.DecaysSince(oldest), oldest);
}

}  // namespace
}  // namespace sluice
