#include "common/tensor/running_means.h"

#include <cstdint>
#include <random>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RunningMeansTest, AppendJoinsThoseThatTouchAndHaveOneDecay) {
  RunningMeans means;
  Append({1, 3, 0.5f}, &means);
  Append({3, 4, 0.5f}, &means);
  Append({4, 5, 0.25f}, &means);
  Append({6, 7, 0.25f}, &means);
  EXPECT_THAT(means, ElementsAre(RunningMean{1, 4, 0.5f}, RunningMean{4, 5, 0.25f},
                                 RunningMean{6, 7, 0.25f}));
}

TEST(RunningMeansTest, FitWhereAllElementsAreStatistics) {
  const Layout layout = LayoutOf(
      {{"w", 2}, {"mean", 3, RangeKind::kStatistic}, {"var", 3, RangeKind::kStatistic}, {"b", 1}});
  EXPECT_THAT(CheckFits({}, layout), IsOk());
  EXPECT_THAT(CheckFits({{2, 8, 0.5f}}, layout), IsOk());
  EXPECT_THAT(CheckFits({{2, 5, 0.5f}, {5, 8, 0.5f}}, layout), IsOk());
  for (const RunningMeans& means : std::vector<RunningMeans>{
           {{1, 3, 0}}, {{3, 5, 0}}, {{2, 4, 0}}, {{2, 6, 0}}, {{2, 5, 0}, {6, 8, 0}}}) {
    EXPECT_THAT(CheckFits(means, layout),
                IsError(Reason::kBadArgument, HasSubstr("are a part of a tensor")));
  }
  for (const RunningMeans& means :
       std::vector<RunningMeans>{{{0, 3, 0}}, {{2, 9, 0}}, {{2, 5, 0}, {8, 9, 0}}}) {
    EXPECT_THAT(CheckFits(means, layout),
                IsError(Reason::kBadArgument, HasSubstr("which is parameter, expected statistic")));
  }
  EXPECT_THAT(CheckFits({{2, 10, 0}}, layout),
              IsError(Reason::kBadArgument, HasSubstr("are not in the vector, which has 9")));
}

TEST(RunningMeansTest, AreCutWithTheVector) {
  const Stripes stripes(1000, 3);
  const RunningMeans means = {{10, 700, 0.5f}, {700, 701, 0.25f}};
  std::vector<float> decays(1000);
  for (uint32_t stripe = 0; stripe < 3; ++stripe) {
    for (const RunningMean& mean : OfStripe(means, stripes, stripe)) {
      for (uint64_t i = mean.begin; i < mean.end; ++i) {
        decays[stripes.InVector(stripe, i)] = mean.decay;
      }
    }
  }
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(decays[i], i == 700 ? 0.25f : i >= 10 && i < 700 ? 0.5f : 0) << i;
  }
}

TEST(RunningMeansTest, TheirMeanIsThatOfEachElement) {
  constexpr uint64_t kSize = 40;
  std::mt19937 engine(static_cast<uint32_t>(RunSeed()));
  SCOPED_TRACE(HowToRepeat());
  const auto below = [&engine](uint64_t end) { return engine() % end; };
  for (int round = 0; round < 200; ++round) {
    MeanOfRunningMeans mean;
    EXPECT_TRUE(mean.empty());
    std::vector<double> sums(kSize);
    for (uint64_t gradient = below(4); gradient > 0; --gradient) {
      const float weight = static_cast<float>(1 + below(3));
      RunningMeans means;
      for (uint64_t at = below(5); at + 1 < kSize; at += below(9)) {
        const uint64_t end = at + 1 + below(kSize - at);
        means.push_back({at, end, static_cast<float>(below(5)) / 16});
        for (; at < end; ++at) sums[at] += weight * means.back().decay;
      }
      mean.Add(means, weight);
    }
    std::vector<double> found(kSize);
    const RunningMeans means = mean.Get(16);
    ASSERT_THAT(CheckRunningMeans(means), IsOk());
    for (uint64_t i = 0; i < kSize; ++i) {
      ForEachRunningMean(means, i, i + 1,
                         [&](const RunningMean& m, uint64_t, uint64_t) { found[i] += m.decay; });
      ASSERT_EQ(found[i], sums[i] / 16) << i;
    }
    mean.Clear();
    EXPECT_THAT(mean.Get(1), IsEmpty());
  }
}

}  // namespace
}  // namespace sluice
