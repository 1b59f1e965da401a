#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/tables/table_world.h"

namespace sluice {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(TableStatusTest, CountsWhichOfTheIdsThatWereReadAreRows) {
  TableWorld world({TableOf("users", 1), TableOf("items", 1)});
  world.Push({{1, {4, 5}}}, {1, 1});
  world.MakeStep();
  for (const RowId id : {4, 5, 6}) world.Row(1, id);
  EXPECT_EQ(world.status(1).reads, 3u);
  EXPECT_EQ(world.status(1).hits, 2u);
  EXPECT_EQ(world.status(0).reads, 0u);
}

TEST(TableStatusTest, TheAgeOfARowIsTheStepsSinceAGradientTouchedIt) {
  TableWorld world({TableOf("items", 1)});
  world.Push({{0, {1, 2, 3}}}, {1, 1, 1});
  world.MakeStep();
  for (int step = 0; step < 5; ++step) world.MakeStep();
  EXPECT_EQ(world.status(0).mean_age(), 5);
  world.Push({{0, {2}}}, {1});
  world.MakeStep();
  EXPECT_EQ(world.status(0).mean_age(), 4);  // 6, 0 and 6
}

TEST(TableStatusTest, TheAgesOfManyRowsAreEstimatedFromSome) {
  TableWorld::Options options;
  options.servers = 2;
  TableWorld world({TableOf("items", 1)}, options);
  std::vector<RowId> ids(10'000);
  std::iota(ids.begin(), ids.end(), 0);
  world.Push({{0, ids}}, Values(ids.size(), 1));
  world.MakeStep();
  for (int step = 0; step < 3; ++step) world.MakeStep();
  EXPECT_EQ(world.status(0).rows, 10'000u);
  EXPECT_EQ(world.status(0).mean_age(), 3);
}

TEST(TableStatusTest, ShowsTheHottestRowsOfAllServers) {
  TableWorld::Options options;
  options.servers = 3;
  TableWorld world({TableOf("items", 1)}, options);
  world.Start();
  const std::vector<RowId> hot(6400, 17);
  const std::vector<RowId> warm(640, 18);
  world.Rows(world.latest(), 0, hot);
  world.Rows(world.latest(), 0, warm);
  const std::vector<HotRow> hottest = world.status(0).hottest;
  ASSERT_THAT(hottest, SizeIs(2));
  EXPECT_EQ(hottest[0].id, 17u);
  EXPECT_NEAR(static_cast<double>(hottest[0].reads), 6400, RowReads::kSampled);
  EXPECT_EQ(hottest[1].id, 18u);
}

TEST(TableStatusTest, RowsThatAreReadAlikeAreNotHot) {
  TableWorld world({TableOf("items", 1)});
  world.Start();
  std::vector<RowId> ids(100'000);
  std::iota(ids.begin(), ids.end(), 0);
  Values rows(ids.size());
  world.latest()[0]->Read(0, ids, absl::MakeSpan(rows));
  EXPECT_THAT(world.status(0).hottest, IsEmpty());
}

TEST(TableStatusTest, ASumHasTheHottestRowsOfBoth) {
  TableStatus a;
  TableStatus b;
  for (RowId id = 0; id < 8; ++id) {
    a.hottest.push_back({id, 100 - id});
    b.hottest.push_back({100 + id, 99 - id});
  }
  const TableStatus sum = a + b;
  ASSERT_THAT(sum.hottest, SizeIs(HotRow::kMost));
  EXPECT_EQ(sum.hottest[0], (HotRow{0, 100}));
  EXPECT_EQ(sum.hottest[1], (HotRow{1, 99}));
  EXPECT_EQ(sum.hottest[2], (HotRow{100, 99}));
}

}  // namespace
}  // namespace sluice
