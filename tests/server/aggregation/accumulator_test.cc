#include "server/aggregation/accumulator.h"

#include <memory>
#include <vector>

#include "common/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

StagedVector Gradient(const Values& values) {
  StagedVector gradient(std::make_shared<const Layout>(ParametersOnly(values.size())));
  EXPECT_THAT(gradient.Add(ChunkOf(0, values)), IsOk());
  gradient.Seal();
  return gradient;
}

void Add(Accumulator& accumulator, const StagedVector& gradient,
         const GradientWeight& weight = GradientWeight()) {
  Serial serial;
  accumulator.Add({&gradient, weight}, serial);
}

// The whole sum, plus `last`.
Values SumWith(const Accumulator& accumulator, const StagedVector& last,
               const GradientWeight& weight = GradientWeight()) {
  Values sum(last.bytes() / sizeof(float), 4711);
  accumulator.SumWith(Addend{&last, weight}, 0, absl::MakeSpan(sum));
  return sum;
}

TEST(AccumulatorTest, BoundsItsSum) {
  Accumulator accumulator(ParametersOnly(3));
  EXPECT_EQ(accumulator.bound(), 0);
  const StagedVector last = Gradient({0, -7, 1});
  EXPECT_EQ(accumulator.BoundWith({&last, {2, 3}}), 21);
  Add(accumulator, Gradient({1, -2, 0.5f}));
  Add(accumulator, Gradient({0, 0, 4}), {0.5f, 0.25f});
  EXPECT_EQ(accumulator.bound(), 4);
  EXPECT_EQ(accumulator.BoundWith({&last, {1, 1}}), 11);
  accumulator.Clear();
  EXPECT_EQ(accumulator.bound(), 0);
  Serial serial;
  accumulator.Load({1, -9, 2}, serial);
  EXPECT_EQ(accumulator.bound(), 9);
}

TEST(AccumulatorTest, LiesWhereItIsTold) {
  Accumulator accumulator(ParametersOnly(3));
  Values memory(3, 4711);
  accumulator.LieIn(absl::MakeSpan(memory));
  Add(accumulator, Gradient({1, 2, 3}));
  Add(accumulator, Gradient({1, 1, 1}));
  EXPECT_THAT(memory, ElementsAre(2, 3, 4));
  EXPECT_EQ(accumulator.sum().data(), memory.data());
  accumulator.Clear();
  Add(accumulator, Gradient({9, 9, 9}));
  EXPECT_THAT(memory, ElementsAre(2, 3, 4));
  EXPECT_THAT(accumulator.sum(), ElementsAre(9, 9, 9));
}

TEST(AccumulatorTest, TakesAFirstGradientThatArrivedWhereTheSumLies) {
  const auto memory = std::make_shared<FloatBuffer>(3);
  for (const float weight : {1, 3}) {
    Accumulator accumulator(ParametersOnly(3));
    accumulator.LieIn(memory->span());
    StagedVector gradient(std::make_shared<const Layout>(ParametersOnly(3)), memory);
    ASSERT_THAT(gradient.Add(ChunkOf(0, {1, 2, 3})), IsOk());
    gradient.Seal();
    Add(accumulator, gradient, {weight, weight});
    Add(accumulator, Gradient({10, 10, 10}));
    EXPECT_THAT(memory->span(), ElementsAre(weight + 10, 2 * weight + 10, 3 * weight + 10));
  }
}

TEST(AccumulatorTest, StartsWithNoGradient) {
  EXPECT_EQ(Accumulator(ParametersOnly(3)).count(), 0u);
}

TEST(AccumulatorTest, SumsAndCountsGradients) {
  Accumulator accumulator(ParametersOnly(3));
  Add(accumulator, Gradient({1, 2, 3}));
  EXPECT_EQ(accumulator.count(), 1u);
  EXPECT_THAT(accumulator.sum(), ElementsAre(1, 2, 3));
  Add(accumulator, Gradient({10, 20, 30}));
  Add(accumulator, Gradient({100, 200, 300}));
  EXPECT_EQ(accumulator.count(), 3u);
  EXPECT_THAT(accumulator.sum(), ElementsAre(111, 222, 333));
}

TEST(AccumulatorTest, StartsAnewWhenCleared) {
  Accumulator accumulator(ParametersOnly(2));
  Add(accumulator, Gradient({1, 2}));
  Add(accumulator, Gradient({1, 2}));
  accumulator.Clear();
  EXPECT_EQ(accumulator.count(), 0u);
  Add(accumulator, Gradient({5, 6}));
  EXPECT_EQ(accumulator.count(), 1u);
  EXPECT_THAT(accumulator.sum(), ElementsAre(5, 6));
}

TEST(AccumulatorTest, TakesAGradientInPieces) {
  Accumulator accumulator(ParametersOnly(3));
  StagedVector pieces(std::make_shared<const Layout>(ParametersOnly(3)));
  ASSERT_THAT(pieces.Add(ChunkOf(1, {2, 3})), IsOk());
  ASSERT_THAT(pieces.Add(ChunkOf(0, {1})), IsOk());
  pieces.Seal();
  Add(accumulator, pieces);
  Add(accumulator, pieces);
  EXPECT_THAT(accumulator.sum(), ElementsAre(2, 4, 6));
}

TEST(AccumulatorTest, MultipliesEachGradientByItsWeight) {
  Accumulator accumulator(ParametersOnly(2));
  Add(accumulator, Gradient({1, 2}), {3, 3});
  EXPECT_THAT(accumulator.sum(), ElementsAre(3, 6));
  Add(accumulator, Gradient({4, 8}), {0.5f, 0.5f});
  Add(accumulator, Gradient({10, 20}));
  EXPECT_THAT(accumulator.sum(), ElementsAre(3 + 2 + 10, 6 + 4 + 20));
  EXPECT_EQ(accumulator.count(), 3u);
}

TEST(AccumulatorTest, WeighsParametersAndStatisticsApart) {
  const Layout layout = LayoutOf(
      {{"w", 2}, {"mean", 1, RangeKind::kStatistic}, {"var", 1, RangeKind::kStatistic}, {"b", 1}});
  Accumulator accumulator(layout);
  StagedVector gradient(std::make_shared<const Layout>(layout));
  // The chunks do not end where the ranges end.
  ASSERT_THAT(gradient.Add(ChunkOf(3, {4, 5})), IsOk());
  ASSERT_THAT(gradient.Add(ChunkOf(0, {1, 2, 3})), IsOk());
  gradient.Seal();
  Add(accumulator, gradient, {0.5f, 1});
  EXPECT_THAT(accumulator.sum(), ElementsAre(0.5, 1, 3, 4, 2.5));
  Add(accumulator, gradient, {1, 2});
  EXPECT_THAT(accumulator.sum(), ElementsAre(1.5, 3, 9, 12, 7.5));
}

TEST(AccumulatorTest, WeighsParametersAndStatisticsApartWhereTheyArrived) {
  const Layout layout = LayoutOf({{"w", 2}, {"mean", 2, RangeKind::kStatistic}, {"b", 1}});
  const auto memory = std::make_shared<FloatBuffer>(5);
  Accumulator accumulator(layout);
  accumulator.LieIn(memory->span());
  StagedVector gradient(std::make_shared<const Layout>(layout), memory);
  ASSERT_THAT(gradient.Add(ChunkOf(3, {4, 5})), IsOk());
  ASSERT_THAT(gradient.Add(ChunkOf(0, {1, 2, 3})), IsOk());
  gradient.Seal();
  Add(accumulator, gradient, {0.5f, 3});
  EXPECT_THAT(memory->span(), ElementsAre(0.5, 1, 9, 12, 2.5));
}

TEST(AccumulatorTest, AWeightOfOneChangesNoBit) {
  Accumulator weighted(ParametersOnly(3));
  Accumulator plain(ParametersOnly(3));
  for (const Values& values : {Values{0.1f, 1e-30f, 3e30f}, Values{0.7f, -1e-38f, 1}}) {
    Add(weighted, Gradient(values), {1, 1});
    Add(plain, Gradient(values));
  }
  EXPECT_EQ(ValuesOf(weighted.sum()), ValuesOf(plain.sum()));
}

TEST(AccumulatorTest, AddsTheLastOnTheWay) {
  Accumulator accumulator(ParametersOnly(3));
  Values none(3, 4711);
  accumulator.SumWith(absl::nullopt, 0, absl::MakeSpan(none));
  EXPECT_THAT(none, Each(0));
  EXPECT_THAT(SumWith(accumulator, Gradient({1, 2, 3}), {2, 2}), ElementsAre(2, 4, 6));
  Add(accumulator, Gradient({10, 20, 30}));
  EXPECT_THAT(SumWith(accumulator, Gradient({1, 2, 3})), ElementsAre(11, 22, 33));
  EXPECT_THAT(accumulator.sum(), ElementsAre(10, 20, 30));
}

TEST(AccumulatorTest, AddsAPartOfTheLastWeighingStatisticsApart) {
  Accumulator accumulator(LayoutOf({{"w", 2}, {"mean", 2, RangeKind::kStatistic}, {"b", 1}}));
  StagedVector gradient = Gradient({1, 2, 3, 4, 5});
  Add(accumulator, gradient);
  Values part(3);
  accumulator.SumWith(Addend{&gradient, {10, 100}}, 1, absl::MakeSpan(part));
  EXPECT_THAT(part, ElementsAre(2 + 20, 3 + 300, 4 + 400));
}

TEST(AccumulatorTest, AddingTheLastOnTheWayChangesNoBit) {
  const std::vector<Values> gradients = {
      {0.1f, 1e-30f, 3e30f}, {0.7f, -1e-38f, 1}, {1e7f, 3, 0.3f}};
  Accumulator at_once(ParametersOnly(3));
  for (const Values& gradient : gradients) Add(at_once, Gradient(gradient), {0.3f, 0.3f});
  Accumulator on_the_way(ParametersOnly(3));
  Add(on_the_way, Gradient(gradients[0]), {0.3f, 0.3f});
  Add(on_the_way, Gradient(gradients[1]), {0.3f, 0.3f});
  EXPECT_EQ(SumWith(on_the_way, Gradient(gradients[2]), {0.3f, 0.3f}), ValuesOf(at_once.sum()));
}

TEST(AccumulatorTest, HowManyThreadsAddChangesNoBit) {
  constexpr uint32_t kSize = (3 << 18) + 5;
  Values values(kSize);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
  const StagedVector gradient = Gradient(values);
  Accumulator one(ParametersOnly(kSize));
  Accumulator four(ParametersOnly(kSize));
  ThreadPool threads(4);
  for (int i = 0; i < 3; ++i) {
    Add(one, gradient, {0.3f, 0.3f});
    four.Add({&gradient, {0.3f, 0.3f}}, threads);
  }
  EXPECT_EQ(ValuesOf(four.sum()), ValuesOf(one.sum()));
}

}  // namespace
}  // namespace sluice
