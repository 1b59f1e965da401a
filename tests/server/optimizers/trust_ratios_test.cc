#include "server/optimizers/trust_ratios.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

auto Writing(const Values& update) {
  return [&update](uint64_t begin, absl::Span<float> to) {
    std::copy_n(update.begin() + static_cast<int64_t>(begin), to.size(), to.begin());
  };
}

// What becomes of `current` by `update`, with a learning rate for each group.
Values Step(const std::vector<GroupRun>& ranges, const Values& current, const Values& update,
            const std::vector<double>& learning_rates) {
  const Stripes stripes(current.size(), 1);
  TrustRatios ratios(ranges, stripes.unit());
  Serial serial;
  const auto measured = ratios.Measure(current, serial, Writing(update));
  ratios.SetRates(ComputeTrustRates(ranges, stripes, learning_rates, {measured}).rates);
  Values next = update;
  ratios.Apply(0, current, absl::MakeSpan(next));
  return next;
}

constexpr auto kParameter = RangeKind::kParameter;

TEST(TrustRatiosTest, ScaleAnUpdateByTheNormsOfEachRange) {
  const std::vector<GroupRun> ranges = {{kParameter, 0, 0, 2}, {kParameter, 0, 2, 3}};
  // Norms 10 and 5, then 8 and 2: ratios 2 and 4.
  EXPECT_THAT(Step(ranges, {6, 8, 8}, {3, 4, 2}, {0.5}),
              ElementsAre(6 - 0.5 * 2 * 3, 8 - 0.5 * 2 * 4, 8 - 0.5 * 4 * 2));
}

TEST(TrustRatiosTest, TakeEachGroupsLearningRate) {
  const std::vector<GroupRun> ranges = {{kParameter, 0, 0, 1}, {kParameter, 1, 1, 2}};
  EXPECT_THAT(Step(ranges, {8, 8}, {2, 2}, {0.5, 0.25}), ElementsAre(8 - 4, 8 - 2));
}

TEST(TrustRatiosTest, AreOneWhereANormIsZero) {
  const std::vector<GroupRun> ranges = {{kParameter, 0, 0, 1}, {kParameter, 0, 1, 2}};
  EXPECT_THAT(Step(ranges, {0, 3}, {4, 0}, {0.5}), ElementsAre(-2, 3));
}

TEST(TrustRatiosTest, LeaveStatisticsAsTheyAreAndOutOfTheNorms) {
  const std::vector<GroupRun> ranges = {
      {kParameter, 0, 0, 1}, {RangeKind::kStatistic, 0, 1, 2}, {kParameter, 0, 2, 3}};
  EXPECT_THAT(Step(ranges, {8, 100, 8}, {2, 1000, 4}, {1}), ElementsAre(0, 1000, 0));
}

// A range in several units has one norm.
TEST(TrustRatiosTest, MeasureARangeInSeveralUnitsWhole) {
  constexpr size_t kSize = (1 << 19) + 3;
  Values update(kSize, 0);
  update.front() = 3;
  update.back() = 4;
  Values current(kSize, 0);
  current[1] = 10;
  const Values next = Step({{kParameter, 0, 0, kSize}}, current, update, {1});
  EXPECT_EQ(next.front(), -6);
  EXPECT_EQ(next[1], 10);
  EXPECT_EQ(next.back(), -8);
}

TEST(TrustRatiosTest, ApplyToTheElementsAskedForAlone) {
  TrustRatios ratios({{kParameter, 0, 0, 3}}, 64);
  ratios.SetRates({2});
  const Values current = {2, 2, 2};
  Values next = {1, 1, 1};
  ratios.Apply(1, current, absl::MakeSpan(next).subspan(1, 1));
  EXPECT_THAT(next, ElementsAre(1, 0, 1));
}

// ‖p‖ + rate · ‖u‖ bounds every next parameter.
TEST(TrustRatiosTest, AreSureIfNoParameterCanBecomeInfinite) {
  const std::vector<GroupRun> ranges = {{kParameter, 0, 0, 1}};
  const Stripes stripes(1, 1);
  EXPECT_TRUE(ComputeTrustRates(ranges, stripes, {1}, {{{4, 4}}}).sure);
  EXPECT_FALSE(ComputeTrustRates(ranges, stripes, {1e38}, {{{4, 4}}}).sure);
  EXPECT_FALSE(ComputeTrustRates(ranges, stripes, {1}, {{{std::nan(""), 4}}}).sure);
}

}  // namespace
}  // namespace sluice
