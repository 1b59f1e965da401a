#include "server/policy/loss_trend.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::DoubleNear;

LossTrend After(const std::vector<double>& losses) {
  LossTrend trend;
  for (const double loss : losses) trend.Add(loss);
  return trend;
}

std::vector<double> Times(size_t count, double loss) { return std::vector<double>(count, loss); }

std::vector<double> operator+(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(LossTrendTest, JudgesNothingBeforeItKnowsTheFirstLosses) {
  const LossTrend trend = After(Times(LossTrend::kFirst - 1, 2.3) + Times(0, 0));
  EXPECT_FALSE(trend.known());
  EXPECT_FALSE(trend.has_fallen());
  EXPECT_FALSE(trend.rises());
}

TEST(LossTrendTest, TheFirstLossesAreThoseOfTheBeginningAlsoIfTheJobLearnsAtOnce) {
  const LossTrend trend =
      After(std::vector<double>{2.3, 2, 1.6, 1.2, 0.8} + Times(LossTrend::kFirst, 0.1));
  EXPECT_EQ(trend.first(), 1.6);
  EXPECT_TRUE(trend.has_fallen());
}

TEST(LossTrendTest, AJobThatLearnsInItsVeryFirstStepHasFallen) {
  EXPECT_TRUE(After(Times(1, 2.3) + Times(LossTrend::kFirst, 0.1)).has_fallen());
}

TEST(LossTrendTest, OneVeryHighFirstLossIsNotThatOfTheBeginning) {
  const LossTrend trend = After(Times(1, 50) + Times(LossTrend::kFirst, 2.3));
  EXPECT_THAT(trend.first(), DoubleNear(2.3, 0.01));
  EXPECT_TRUE(After(Times(1, 50) + Times(LossTrend::kFirst, 2.3) + Times(1, 2.6)).rises());
}

TEST(LossTrendTest, ALuckyFirstLossIsNotThatOfTheBeginning) {
  const LossTrend trend = After(Times(1, 0.1) + Times(LossTrend::kFirst, 2.3));
  EXPECT_THAT(trend.first(), DoubleNear(2.271, 0.001));
}

TEST(LossTrendTest, AFirstLossThatIsALittleHigherIsNoFallOfTheOthers) {
  EXPECT_FALSE(After(Times(1, 2.45) + Times(2000, 2.303)).has_fallen());
}

TEST(LossTrendTest, FallsByMoreThanThreePercent) {
  const std::vector<double> first = Times(LossTrend::kFirst, 1);
  EXPECT_FALSE(After(first + Times(10'000, 0.971)).has_fallen());
  EXPECT_TRUE(After(first + Times(10'000, 0.969)).has_fallen());
}

TEST(LossTrendTest, OneBatchDoesNotMakeItFall) {
  EXPECT_FALSE(After(Times(LossTrend::kFirst, 1) + Times(1, 0)).has_fallen());
}

TEST(LossTrendTest, SmoothsOver64Steps) {
  const LossTrend trend = After(Times(LossTrend::kFirst, 1) + Times(64, 0.5));
  EXPECT_THAT(trend.smoothed(), DoubleNear(0.6825, 0.0001));  // (1 + (63/64)^64) / 2
  EXPECT_EQ(trend.best(), trend.smoothed());
}

TEST(LossTrendTest, ALossThatNeverFellRisesWhenItIsATenthAboveTheFirst) {
  const std::vector<double> first = Times(LossTrend::kFirst, 2);
  EXPECT_FALSE(After(first + Times(1, 2.2)).rises());
  EXPECT_TRUE(After(first + Times(1, 2.21)).rises());
}

TEST(LossTrendTest, ALossThatFellRisesWhenItHasLostHalfOfItsFallAndATenth) {
  // Down to 0: the middle is 1, the tenth 0.2.
  const std::vector<double> fallen = Times(LossTrend::kFirst, 2) + Times(10'000, 0);
  EXPECT_FALSE(After(fallen + Times(1, 1.19)).rises());
  EXPECT_TRUE(After(fallen + Times(1, 1.21)).rises());
}

TEST(LossTrendTest, ALossThatVariesMuchMustRiseByMore) {
  std::vector<double> first;
  for (size_t i = 0; i < LossTrend::kFirst / 2; ++i) first = first + Times(1, 1) + Times(1, 3);
  EXPECT_FALSE(After(first + Times(1, 5)).rises());
  EXPECT_TRUE(After(first + Times(1, 50)).rises());
}

TEST(LossTrendTest, ANegativeLossIsJudgedLikeAPositiveOne) {
  const std::vector<double> first = Times(LossTrend::kFirst, -10);
  EXPECT_TRUE(After(first + Times(10'000, -11)).has_fallen());
  EXPECT_FALSE(After(first + Times(10'000, -10)).has_fallen());
  EXPECT_TRUE(After(first + Times(1, -8)).rises());
}

// Losses that are distributed exponentially, with this mean: many are small, and few are large.
std::vector<double> Skewed(size_t count, double mean) {
  std::vector<double> losses;
  for (size_t i = 2; i < count + 2; ++i) {
    const double evenly = std::fmod(static_cast<double>(i) * 0.618033988749895, 1);
    losses.push_back(-mean * std::log(1 - evenly));
  }
  return losses;
}

TEST(LossTrendTest, ComparesMeansWithMeans) {
  const std::vector<double> first = Skewed(LossTrend::kFirst, 1);
  EXPECT_THAT(After(first).first(), DoubleNear(1, 0.01));  // the median is 0.69
  EXPECT_FALSE(After(first + Skewed(1000, 1)).has_fallen());
  EXPECT_TRUE(After(first + Skewed(1000, 0.75)).has_fallen());
}

TEST(LossTrendTest, LossesThatRiseAmongTheFirstAreNotThoseOfTheBeginning) {
  const size_t half = LossTrend::kFirst / 2;
  EXPECT_EQ(After(Times(half, 2) + Times(half, 3)).first(), 2);
}

TEST(LossTrendTest, LossesThatFallAmongTheFirstDoNotVaryMuch) {
  std::vector<double> first;
  for (size_t i = 0; i < LossTrend::kFirst; ++i)
    first.push_back(2.3 - 0.03 * static_cast<double>(i));
  EXPECT_TRUE(After(first + Times(1, 2.6)).rises());
}

TEST(LossTrendTest, OneVeryLowLossHardlyCounts) {
  const LossTrend trend = After(Times(LossTrend::kFirst, 1) + Times(1, -1e30));
  EXPECT_THAT(trend.best(), DoubleNear(1 - 0.8 / 64, 1e-9));  // as if it were 0.2
  EXPECT_FALSE(trend.has_fallen());
}

TEST(LossTrendTest, BeginsWithTheFirstLossThatIsNotZero) {
  EXPECT_FALSE(After(Times(1000, 0)).begun());
  const LossTrend trend = After(Times(1000, 0) + Times(LossTrend::kFirst, 2));
  EXPECT_TRUE(trend.known());
  EXPECT_EQ(trend.first(), 2);
}

TEST(LossTrendTest, BeginsAnewWhereMostOfTheFirstLossesAreZero) {
  const LossTrend trend = After(Times(1, 2) + Times(LossTrend::kFirst - 1, 0));
  EXPECT_FALSE(trend.begun());
  EXPECT_FALSE(trend.improved());
}

TEST(LossTrendTest, HasNoMemoryBeforeItKnowsTheFirstLosses) {
  EXPECT_EQ(After(Times(LossTrend::kFirst - 1, 2)).memory(), absl::nullopt);
}

TEST(LossTrendTest, GoesOnFromItsMemory) {
  LossTrend earlier = After(Times(1, 3) + Times(LossTrend::kFirst, 2) + Times(1000, 0.5));
  LossTrend later;
  later.Restore(earlier.memory().value());
  EXPECT_TRUE(later.known());
  EXPECT_TRUE(later.has_fallen());
  EXPECT_FALSE(later.rises());
  for (const double loss : {0.6, 1.3, 2.0, 4.6}) {
    earlier.Add(loss);
    later.Add(loss);
    EXPECT_EQ(later.smoothed(), earlier.smoothed());
    EXPECT_EQ(later.rises(), earlier.rises());
    EXPECT_EQ(later.improved(), earlier.improved());
    EXPECT_EQ(later.worsened(), earlier.worsened());
  }
}

TEST(LossTrendTest, ComparesWithTheVeryFirstLossFromTheBeginning) {
  EXPECT_TRUE(After(Times(1, 2) + Times(1, 1.9)).improved());
  EXPECT_FALSE(After(Times(1, 2) + Times(1, 3)).worsened());
  EXPECT_TRUE(After(Times(1, 2) + Times(1, 3.1)).worsened());
}

}  // namespace
}  // namespace sluice
