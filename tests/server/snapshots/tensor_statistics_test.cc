#include "server/snapshots/tensor_statistics.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace sluice {
namespace {

using Values = std::vector<float>;

// Of values that lie in units of that size.
TensorStatistics StatisticsOf(const Values& values, size_t unit) {
  CombinedStatistics all;
  for (size_t begin = 0; begin < values.size(); begin += unit) {
    const auto part = absl::MakeConstSpan(values).subspan(begin, unit);
    all.Add(Summarize(part), part.size());
  }
  return all.Get();
}

TensorStatistics StatisticsOf(const Values& values) { return StatisticsOf(values, values.size()); }

TEST(TensorStatisticsTest, SummarizesAFewValues) {
  const TensorStatistics result = StatisticsOf(Values({3, -1, 0, 4, 0, 0}));
  EXPECT_EQ(result.min, -1);
  EXPECT_EQ(result.max, 4);
  EXPECT_DOUBLE_EQ(result.mean, 1);
  EXPECT_DOUBLE_EQ(result.standard_deviation, std::sqrt(20.0 / 6));
  EXPECT_DOUBLE_EQ(result.l2_norm, std::sqrt(26.0));
  EXPECT_DOUBLE_EQ(result.zero_share, 0.5);
}

TEST(TensorStatisticsTest, SummarizesOneValue) {
  const TensorStatistics result = StatisticsOf(Values({-2.5f}));
  EXPECT_EQ(result.min, -2.5f);
  EXPECT_EQ(result.max, -2.5f);
  EXPECT_EQ(result.mean, -2.5);
  EXPECT_EQ(result.standard_deviation, 0);
  EXPECT_EQ(result.l2_norm, 2.5);
  EXPECT_EQ(result.zero_share, 0);
}

TEST(TensorStatisticsTest, CountsBothZerosAndNothingElse) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_DOUBLE_EQ(StatisticsOf(Values({0.0f, -0.0f, tiny, -tiny})).zero_share, 0.5);
}

// The naive formula, mean of squares − square of mean, would lose all digits here.
TEST(TensorStatisticsTest, KeepsTheDeviationOfValuesFarFromZero) {
  Values values;
  for (int i = 0; i < 1000; ++i) values.push_back(16'000'000.0f + static_cast<float>(i % 2));
  const TensorStatistics result = StatisticsOf(values);
  EXPECT_DOUBLE_EQ(result.mean, 16'000'000.5);
  EXPECT_DOUBLE_EQ(result.standard_deviation, 0.5);
}

TEST(TensorStatisticsTest, BearsTheLargestFloats) {
  const float largest = std::numeric_limits<float>::max();
  const TensorStatistics result = StatisticsOf(Values({largest, -largest}));
  EXPECT_EQ(result.mean, 0);
  EXPECT_DOUBLE_EQ(result.standard_deviation, largest);
  EXPECT_DOUBLE_EQ(result.l2_norm, std::sqrt(2.0) * largest);
}

// 0, 1, …, n − 1: mean (n − 1) / 2, variance (n² − 1) / 12, squares (n − 1) n (2n − 1) / 6.
TEST(TensorStatisticsTest, AgreesWithTheClosedFormsOfALongRamp) {
  constexpr uint32_t kCount = 1'000'003;
  Values values(kCount);
  for (uint32_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i);
  const double n = kCount;
  for (const size_t unit : {size_t{kCount}, size_t{1} << 18, size_t{64}, size_t{1}}) {
    const TensorStatistics result = StatisticsOf(values, unit);
    EXPECT_EQ(result.min, 0);
    EXPECT_EQ(result.max, kCount - 1);
    EXPECT_NEAR(result.mean, (n - 1) / 2, 1e-6) << unit;
    EXPECT_NEAR(result.standard_deviation, std::sqrt((n * n - 1) / 12), 1e-6) << unit;
    EXPECT_NEAR(result.l2_norm / std::sqrt((n - 1) * n * (2 * n - 1) / 6), 1, 1e-12) << unit;
    EXPECT_DOUBLE_EQ(result.zero_share, 1 / n);
  }
}

// Neither unit deviates from its mean.
TEST(TensorStatisticsTest, CombinesTheDeviationsBetweenUnits) {
  const TensorStatistics result = StatisticsOf({3, 3, 3, 7}, 3);
  EXPECT_EQ(result.min, 3);
  EXPECT_EQ(result.max, 7);
  EXPECT_DOUBLE_EQ(result.mean, 4);
  EXPECT_DOUBLE_EQ(result.standard_deviation, std::sqrt(3.0));
  EXPECT_DOUBLE_EQ(result.l2_norm, std::sqrt(76.0));
}

}  // namespace
}  // namespace sluice
