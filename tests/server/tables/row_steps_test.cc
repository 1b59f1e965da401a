#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/tables/table_world.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

TableSpec WithRowDivisor(TableSpec table) {
  table.divisor = RowDivisor::kRowContributors;
  return table;
}

TEST(RowStepsTest, AStepChangesTheRowsThatWereTouched) {
  TableWorld world({TableOf("items", 2)});
  world.Push({{0, {7, 9}}}, {1, 2, 3, 4});
  world.MakeStep();
  EXPECT_THAT(world.Row(0, 7), ElementsAre(-1, -2));
  EXPECT_THAT(world.Row(0, 9), ElementsAre(-3, -4));
  EXPECT_THAT(world.Row(0, 8), ElementsAre(0, 0));
  EXPECT_EQ(world.status(0).rows, 2);
}

TEST(RowStepsTest, APullMakesNoRow) {
  TableWorld world({TableOf("items", 2)});
  world.Start();
  EXPECT_THAT(world.Row(0, 8), ElementsAre(0, 0));
  EXPECT_EQ(world.status(0).rows, 0);
}

TEST(RowStepsTest, GradientsOfAStepAreAddedWithTheirWeights) {
  TableWorld world({TableOf("items", 1)});
  world.Push({{0, {1, 2}}}, {1, 2}, 0.5f);
  world.Push({{0, {2, 3}}}, {4, 8}, 2);
  world.MakeStep();
  EXPECT_THAT(world.Rows(world.latest(), 0, {1, 2, 3}), ElementsAre(-0.5f, -9, -16));
}

TEST(RowStepsTest, ARowMayArriveInSeveralChunks) {
  TableWorld world({TableOf("items", 3), TableOf("users", 2)});
  world.Push({{0, {1}}, {0, {5}}, {1, {1}}}, {1, 2, 3, 4, 5, 6, 7, 8}, 1, 1, 2);
  world.MakeStep();
  EXPECT_THAT(world.Row(0, 1), ElementsAre(-1, -2, -3));
  EXPECT_THAT(world.Row(0, 5), ElementsAre(-4, -5, -6));
  EXPECT_THAT(world.Row(1, 1), ElementsAre(-7, -8));
}

TEST(RowStepsTest, TablesHaveTheirOwnOptimizersAndRates) {
  OptimizerConfig config = {SgdOptions()};
  SgdOptions fast;
  fast.momentum = 0.5;
  config.tables = {{"users", fast}};
  TableWorld world({TableOf("items", 1), TableOf("users", 1)}, {config});
  world.set_rates({1, 10});
  for (int step = 0; step < 2; ++step) {
    world.Push({{0, {1}}, {1, {1}}}, {1, 1});
    world.MakeStep();
  }
  EXPECT_THAT(world.Row(0, 1), ElementsAre(-2));
  EXPECT_THAT(world.Row(1, 1), ElementsAre(-10 - 15));
}

TEST(RowStepsTest, ASumIsDividedByAllContributorsOrByThoseOfTheRow) {
  TableWorld world({TableOf("all", 1), WithRowDivisor(TableOf("own", 1))});
  world.Push({{0, {1, 2}}, {1, {1, 2}}}, {8, 8, 8, 8});
  world.Push({{0, {2}}, {1, {2}}}, {8, 8}, 3, 3);
  world.MakeStep(4, 1);
  EXPECT_THAT(world.Rows(world.latest(), 0, {1, 2}), ElementsAre(-2, -8));
  EXPECT_THAT(world.Rows(world.latest(), 1, {1, 2}), ElementsAre(-8, -8));
}

TEST(RowStepsTest, ClippingScalesTheRowsOwnDivisor) {
  TableWorld world({WithRowDivisor(TableOf("own", 1))});
  world.Push({{0, {1}}}, {8}, 1, 1);
  world.Push({{0, {1}}}, {8}, 1, 1);
  world.MakeStep(2, 4);
  EXPECT_THAT(world.Row(0, 1), ElementsAre(-2));
}

TEST(RowStepsTest, ASumOfGradientsIsDividedAsAllOthers) {
  TableWorld world({WithRowDivisor(TableOf("own", 1))});
  world.Push({{0, {1}}}, {8});
  world.Push({{0, {1}}}, {8});
  world.MakeStep(1);
  EXPECT_THAT(world.Row(0, 1), ElementsAre(-16));
}

TEST(RowStepsTest, AnAbandonedStepChangesNothing) {
  OptimizerConfig config = {AdagradOptions()};
  TableWorld world({TableOf("items", 2)}, {config});
  world.Push({{0, {1, 2}}}, {1, 1, 1, 1});
  world.MakeStep();
  const Values before = world.Rows(world.latest(), 0, {1, 2, 3});
  world.Push({{0, {2, 3}}}, {1, 1, 3e38f, 1});
  world.Push({{0, {3}}}, {3e38f, 1});
  const absl::optional<BadRow> bad = world.Prepare();
  ASSERT_TRUE(bad.has_value());
  EXPECT_EQ(bad->table, 0);
  EXPECT_EQ(bad->id, 3);
  world.Copy();
  EXPECT_EQ(world.Rows(world.latest(), 0, {1, 2, 3}), before);
  EXPECT_EQ(world.status(0).rows, 2);
  EXPECT_EQ(world.server().optimizer_steps(), 1);

  world.Push({{0, {2}}}, {1, 1});
  world.MakeStep();
  EXPECT_FLOAT_EQ(world.Row(0, 2)[0], before[2] - 1 / std::sqrt(2.0f));
}

TEST(RowStepsTest, TheSlotsOfARowMayBeBad) {
  OptimizerConfig config = {AdagradOptions()};
  TableWorld world({TableOf("items", 1)}, {config});
  world.Push({{0, {4}}}, {1e30f});
  EXPECT_TRUE(world.Prepare().has_value());
}

TEST(RowStepsTest, SquaresAreOfTheBucketsOfEachTable) {
  TableWorld world({TableOf("all", 2), WithRowDivisor(TableOf("own", 1))});
  world.Push({{0, {7}}, {1, {7}}}, {3, 4, 6});
  world.Push({{1, {7}}}, {6});
  std::vector<double> expected(2 * kRowBuckets);
  expected[BucketOf(7)] = 25;
  expected[kRowBuckets + BucketOf(7)] = 144;
  EXPECT_EQ(world.server().SquaresOfSums(absl::nullopt), expected);
  expected[kRowBuckets + BucketOf(7)] = 6 * 6 * 5 * 5;
  EXPECT_EQ(world.server().SquaresOfSums(5), expected);
}

TEST(RowStepsTest, SquaresAreTheSameOnAnyNumberOfServersAndThreads) {
  std::vector<RowId> ids(3000);
  Values values(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = i;
    values[i] = std::sin(static_cast<float>(i));
  }
  TableWorld one({TableOf("items", 1)});
  TableWorld::Options options;
  options.servers = 3;
  options.threads = 4;
  TableWorld three({TableOf("items", 1)}, options);
  one.Push({{0, ids}}, values);
  three.Push({{0, ids}}, values);
  const std::vector<double> expected = one.server().SquaresOfSums(absl::nullopt);
  for (uint32_t bucket = 0; bucket < kRowBuckets; ++bucket) {
    const std::vector<double> held = three.server(bucket % 3).SquaresOfSums(absl::nullopt);
    EXPECT_EQ(held[bucket / 3], expected[bucket]);
  }
}

}  // namespace
}  // namespace sluice
