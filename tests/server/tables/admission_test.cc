#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/tables/table_world.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

TableSpec AdmittingAfter(uint32_t touches) {
  TableSpec table = TableOf("items", 1);
  table.admit_after = touches;
  return table;
}

TEST(AdmissionTest, ARowIsMadeByTheStepThatCompletesItsTouches) {
  TableWorld world({AdmittingAfter(3)});
  for (int step = 0; step < 2; ++step) {
    world.Push({{0, {5}}}, {1});
    world.MakeStep();
    EXPECT_THAT(world.Row(0, 5), ElementsAre(0));
    EXPECT_EQ(world.status(0).rows, 0);
    EXPECT_EQ(world.status(0).waiting, 1);
  }
  EXPECT_EQ(world.status(0).dropped, 2);
  world.Push({{0, {5}}}, {1});
  world.MakeStep();
  EXPECT_THAT(world.Row(0, 5), ElementsAre(-1));
  EXPECT_EQ(world.status(0).rows, 1);
  EXPECT_EQ(world.status(0).waiting, 0);
  EXPECT_EQ(world.status(0).dropped, 2);
}

TEST(AdmissionTest, SeveralPushesOfAStepAreOneTouch) {
  TableWorld world({AdmittingAfter(2)});
  for (int push = 0; push < 3; ++push) world.Push({{0, {5}}}, {1});
  world.MakeStep();
  EXPECT_EQ(world.status(0).waiting, 1);
}

TEST(AdmissionTest, ARowAmongThoseThatWaitGetsItsOwnGradient) {
  TableWorld world({AdmittingAfter(2)});
  world.Push({{0, {5}}}, {1});
  world.MakeStep();
  world.Push({{0, {4, 5, 6}}}, {10, 20, 30});
  world.MakeStep();
  EXPECT_THAT(world.Rows(world.latest(), 0, {4, 5, 6}), ElementsAre(0, -20, 0));
}

TEST(AdmissionTest, AnAbandonedStepIsNoTouch) {
  TableWorld world({AdmittingAfter(2)});
  world.Push({{0, {5}}}, {1});
  EXPECT_FALSE(world.Prepare().has_value());
  world.Copy();
  EXPECT_EQ(world.status(0).waiting, 0);
}

TEST(AdmissionTest, OlderSnapshotsDoNotHaveTheRow) {
  TableWorld world({AdmittingAfter(2)});
  world.Push({{0, {5}}}, {1});
  world.MakeStep();
  const TableWorld::Snapshots waiting = world.latest();
  world.Push({{0, {5}}}, {1});
  world.MakeStep();
  EXPECT_THAT(world.Row(waiting, 0, 5), ElementsAre(0));
  int found = 0;
  waiting[0]->Find(0, 5, [&](const StoredRow& row) {
    ++found;
    EXPECT_EQ(row.touches, 1);
    EXPECT_EQ(row.touched, Step(1));
    EXPECT_TRUE(row.elements.empty());
  });
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace sluice
