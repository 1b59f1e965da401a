#include "server/accumulator.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

StagedVector Gradient(const Values& values) {
  StagedVector gradient(std::make_shared<const Layout>(ParametersOnly(values.size())));
  EXPECT_THAT(gradient.Add(ChunkOf(0, values)), IsOk());
  return gradient;
}

TEST(AccumulatorTest, StartsWithNoGradient) {
  EXPECT_EQ(Accumulator(ParametersOnly(3)).count(), 0u);
}

TEST(AccumulatorTest, SumsAndCountsGradients) {
  Accumulator accumulator(ParametersOnly(3));
  accumulator.Add(Gradient({1, 2, 3}));
  EXPECT_EQ(accumulator.count(), 1u);
  EXPECT_THAT(accumulator.sum(), ElementsAre(1, 2, 3));
  accumulator.Add(Gradient({10, 20, 30}));
  accumulator.Add(Gradient({100, 200, 300}));
  EXPECT_EQ(accumulator.count(), 3u);
  EXPECT_THAT(accumulator.sum(), ElementsAre(111, 222, 333));
}

TEST(AccumulatorTest, StartsAnewWhenCleared) {
  Accumulator accumulator(ParametersOnly(2));
  accumulator.Add(Gradient({1, 2}));
  accumulator.Add(Gradient({1, 2}));
  accumulator.Clear();
  EXPECT_EQ(accumulator.count(), 0u);
  accumulator.Add(Gradient({5, 6}));
  EXPECT_EQ(accumulator.count(), 1u);
  EXPECT_THAT(accumulator.sum(), ElementsAre(5, 6));
}

TEST(AccumulatorTest, TakesAGradientInPieces) {
  Accumulator accumulator(ParametersOnly(3));
  StagedVector pieces(std::make_shared<const Layout>(ParametersOnly(3)));
  ASSERT_THAT(pieces.Add(ChunkOf(1, {2, 3})), IsOk());
  ASSERT_THAT(pieces.Add(ChunkOf(0, {1})), IsOk());
  accumulator.Add(pieces);
  accumulator.Add(pieces);
  EXPECT_THAT(accumulator.sum(), ElementsAre(2, 4, 6));
}

TEST(AccumulatorTest, MultipliesEachGradientByItsWeight) {
  Accumulator accumulator(ParametersOnly(2));
  accumulator.Add(Gradient({1, 2}), {3, 3});
  EXPECT_THAT(accumulator.sum(), ElementsAre(3, 6));
  accumulator.Add(Gradient({4, 8}), {0.5f, 0.5f});
  accumulator.Add(Gradient({10, 20}));
  EXPECT_THAT(accumulator.sum(), ElementsAre(3 + 2 + 10, 6 + 4 + 20));
  EXPECT_EQ(accumulator.count(), 3u);
}

TEST(AccumulatorTest, WeighsParametersAndStatisticsApart) {
  const Layout layout = LayoutOf(
      {{"w", 2}, {"mean", 1, RangeKind::kStatistic}, {"var", 1, RangeKind::kStatistic}, {"b", 1}});
  Accumulator accumulator(layout);
  StagedVector gradient(std::make_shared<const Layout>(layout));
  // Cut across the ranges.
  ASSERT_THAT(gradient.Add(ChunkOf(3, {4, 5})), IsOk());
  ASSERT_THAT(gradient.Add(ChunkOf(0, {1, 2, 3})), IsOk());
  accumulator.Add(gradient, {0.5f, 1});
  EXPECT_THAT(accumulator.sum(), ElementsAre(0.5, 1, 3, 4, 2.5));
  accumulator.Add(gradient, {1, 2});
  EXPECT_THAT(accumulator.sum(), ElementsAre(1.5, 3, 9, 12, 7.5));
}

TEST(AccumulatorTest, AWeightOfOneChangesNoBit) {
  Accumulator weighted(ParametersOnly(3));
  Accumulator plain(ParametersOnly(3));
  for (const Values& values : {Values{0.1f, 1e-30f, 3e30f}, Values{0.7f, -1e-38f, 1}}) {
    weighted.Add(Gradient(values), {1, 1});
    plain.Add(Gradient(values));
  }
  EXPECT_EQ(ValuesOf(weighted.sum()), ValuesOf(plain.sum()));
}

}  // namespace
}  // namespace sluice
