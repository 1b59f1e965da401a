#include "worker/client/pulled_means.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What a push says of a mean is a little less than what the caller says.
MATCHER_P3(IsMean, begin, end, decay, "") {
  return arg.begin == begin && arg.end == end && arg.decay <= decay && arg.decay > decay - 2e-6f;
}

TEST(PulledMeansTest, LeavesWhatWasAdded) {
  PulledMeans pulled({{1, 3, 0}, {4, 5, 0}}, Layout());
  pulled.Keep({9, 8, 4, 9, 2});
  Values pushed = {9, 8, 4, 9, 2};
  for (const size_t i : {1, 2, 4}) pushed[i] = 0.5f * pushed[i] + 0.5f;
  EXPECT_THAT(pulled.Subtract({{1, 5, 0.5f}}, /*whole_only=*/false, absl::MakeSpan(pushed)),
              ElementsAre(IsMean(1u, 3u, 0.5f), IsMean(4u, 5u, 0.5f)));
  EXPECT_EQ(pushed[0], 9);
  EXPECT_EQ(pushed[3], 9);
  for (const size_t i : {1, 2, 4}) EXPECT_NEAR(pushed[i], 0.5, 1e-5);
}

TEST(PulledMeansTest, SaysNothingOfElementsThatWereNotKept) {
  PulledMeans pulled({{2, 3, 0}}, Layout());
  Values pushed = {1, 1, 1, 1};
  EXPECT_THAT(pulled.Subtract({{0, 4, 0.5f}}, /*whole_only=*/false, absl::MakeSpan(pushed)),
              IsEmpty());  // no pull yet
  pulled.Keep({1, 1, 1, 1});
  EXPECT_THAT(pulled.Subtract({{0, 4, 0.5f}}, /*whole_only=*/false, absl::MakeSpan(pushed)),
              ElementsAre(IsMean(2u, 3u, 0.5f)));
  EXPECT_THAT(pushed, ElementsAre(1, 1, ::testing::FloatNear(0.5, 1e-5), 1));
  EXPECT_THAT(PulledMeans().Subtract({{0, 4, 0.5f}}, /*whole_only=*/false, absl::MakeSpan(pushed)),
              IsEmpty());
}

TEST(PulledMeansTest, WhatNoBatchHasChangedGainsNothingAndWhatWasSetByHandIsAValue) {
  PulledMeans pulled({{0, 2, 0}}, Layout());
  pulled.Keep({3, 4});
  Values pushed = {3, 4};
  EXPECT_THAT(pulled.Subtract({{0, 2, 1}}, /*whole_only=*/false, absl::MakeSpan(pushed)),
              ElementsAre(IsMean(0u, 2u, 1.0f)));
  EXPECT_THAT(pushed, ElementsAre(::testing::FloatNear(0, 1e-5), ::testing::FloatNear(0, 1e-5)));
  pushed = {3, 7};
  EXPECT_THAT(pulled.Subtract({{0, 2, 1}}, /*whole_only=*/false, absl::MakeSpan(pushed)),
              IsEmpty());
  EXPECT_THAT(pushed, ElementsAre(3, 7));
}

TEST(PulledMeansTest, OfACountTheNumberOfNewBatchesIsPushedInAnyMode) {
  const auto layout =
      Layout::Create({{"weight", {2}, RangeKind::kParameter, DataType::kFloat32, 0, 2},
                      {"running_mean", {1}, RangeKind::kStatistic, DataType::kFloat32, 2, 1},
                      {"num_batches_tracked", {}, RangeKind::kStatistic, DataType::kInt64, 3, 1}});
  PulledMeans pulled({{2, 3, 0}, {3, 4, 0}}, *layout);
  pulled.Keep({1, 1, 5, 100});
  for (const bool whole_only : {false, true}) {
    Values pushed = {1, 1, 6, 103};
    EXPECT_THAT(pulled.Subtract({{2, 4, 1}}, whole_only, absl::MakeSpan(pushed)),
                ElementsAre(IsMean(3u, 4u, 1.0f)));
    EXPECT_THAT(pushed, ElementsAre(1, 1, 6, 3));  // the mean was set by hand
  }
  // The mean of two workers' counts, of which one has counted: the worker's own is the nearest.
  pulled.Keep({1, 1, 5, 100.5});
  Values pushed = {1, 1, 5, 101};
  pulled.Subtract({{2, 4, 1}}, /*whole_only=*/true, absl::MakeSpan(pushed));
  EXPECT_THAT(pushed, ElementsAre(1, 1, 0, 1));
}

// A channel whose batches have a variance of 0: each of its averages is (1 - m) of the one before,
// as LibTorch rounds it. No average of stale pushes may become negative.
TEST(PulledMeansTest, NoVarianceBecomesNegative) {
  for (const double momentum : {0.1, 0.01, 0.3, 0.997}) {
    for (float value = 1e-3f; value < 1e6f; value *= 1.37f) {
      PulledMeans pulled({{0, 1, 0}}, Layout());
      pulled.Keep({value});
      Values pushed = {value};
      for (int batches = 1; batches <= 8; ++batches) {
        pushed[0] = static_cast<float>((1 - momentum) * pushed[0]);
        Values left = pushed;
        const auto decay = static_cast<float>(std::pow(1 - momentum, batches));
        pulled.Subtract({{0, 1, decay}}, /*whole_only=*/false, absl::MakeSpan(left));
        ASSERT_GE(left[0], 0) << momentum << " " << value << " " << batches;
        ASSERT_LE(left[0], 3e-6f * value);
      }
    }
  }
}

}  // namespace
}  // namespace sluice
