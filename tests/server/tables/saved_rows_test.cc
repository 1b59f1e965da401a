// What a journal and a checkpoint keep of tables leads back to the same bits.

#include <algorithm>
#include <iterator>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/tables/table_world.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

std::vector<TableSpec> Tables() {
  TableSpec items = TableOf("items", 3);
  items.initializer = {RowInitializerKind::kNormal, 1, 5};
  items.admit_after = 2;
  items.evict_after = 3;
  TableSpec users = TableOf("users", 2);
  users.divisor = RowDivisor::kRowContributors;
  return {items, users};
}

TableWorld::Options WithAdam(uint32_t threads = 1) {
  TableWorld::Options options;
  options.optimizer = {AdamOptions()};
  options.threads = threads;
  return options;
}

// Two pushes of one step, the same for the same number.
void PushStep(uint32_t number, TableWorld& world) {
  std::mt19937 engine(number);
  for (int push = 0; push < 2; ++push) {
    std::vector<RowIds> ids = {{0, {}}, {1, {}}};
    for (RowId id = 0; id < 900; ++id) {
      if (engine() % 3 == 0) ids[id % 2].ids.push_back(id);
    }
    Values values(ids[0].ids.size() * 3 + ids[1].ids.size() * 2);
    for (float& value : values) value = static_cast<float>(engine() % 1000) / 500 - 1;
    world.Push(ids, values, 1, 1);
  }
}

void StepOf(uint32_t number, TableWorld& world) {
  PushStep(number, world);
  world.MakeStep(2, 1);
}

TEST(SavedRowsTest, SumsAreInTheOrderOfTablesAndIds) {
  TableWorld world(Tables());
  world.Push({{0, {3, 600}}, {1, {2}}}, {1, 2, 3, 4, 5, 6, 7, 8}, 1, 2);
  world.Push({{0, {4, 600}}}, {1, 1, 1, 1, 1, 1}, 2, 3);
  const std::vector<TableSums> sums = world.server().sums();
  ASSERT_EQ(sums.size(), 2);
  EXPECT_EQ(sums[0].table, 0);
  EXPECT_THAT(sums[0].ids, ElementsAre(3, 4, 600));
  EXPECT_THAT(sums[0].sums, ElementsAre(1, 2, 3, 2, 2, 2, 6, 7, 8));
  EXPECT_THAT(sums[0].shares, ElementsAre(2, 3, 5));
  EXPECT_EQ(sums[1].table, 1);
  EXPECT_THAT(sums[1].ids, ElementsAre(2));
  EXPECT_THAT(sums[1].sums, ElementsAre(7, 8));
}

TEST(SavedRowsTest, JournaledSumsMakeTheSameBitsAndChecksums) {
  TableWorld world(Tables(), WithAdam());
  TableWorld replayed(Tables(), WithAdam(4));
  replayed.Start();
  for (uint32_t step = 0; step < 10; ++step) {
    PushStep(step, world);
    replayed.server().Load(world.server().sums());
    world.MakeStep(2, 1);
    replayed.MakeStep(2, 1);
    ASSERT_EQ(world.checksums(), replayed.checksums());
  }
  EXPECT_EQ(AllRows(world.latest()), AllRows(replayed.latest()));
}

TEST(SavedRowsTest, ALoadReplacesTheSums) {
  TableWorld world(Tables());
  world.Push({{1, {1, 2}}}, {1, 1, 1, 1});
  TableSums sums;
  sums.table = 1;
  sums.ids = {2};
  sums.sums = {4, 8};
  sums.shares = {2};
  world.server().Load({sums});
  world.MakeStep(1, 1);
  EXPECT_THAT(world.Row(1, 2), ElementsAre(-2, -4));
  EXPECT_EQ(world.status(1).rows, 1);
}

TEST(SavedRowsTest, ARestoredServerContinuesWithTheSameBits) {
  TableWorld world(Tables(), WithAdam());
  for (uint32_t step = 0; step < 6; ++step) StepOf(step, world);
  TableWorld::Options options = WithAdam();
  options.servers = 3;
  TableWorld restored(Tables(), options);
  for (size_t server = 0; server < restored.servers(); ++server) {
    for (const auto& [table, id, touched, touches, elements] : AllRows(world.latest())) {
      restored.server(server).Load(table, {id, Step(touched), touches, elements});
    }
  }
  restored.Start(world.step(), world.server().optimizer_steps());
  for (uint32_t step = 6; step < 12; ++step) {
    StepOf(step, world);
    StepOf(step, restored);
  }
  std::vector<RowOfTable> found = AllRows(restored.latest());
  std::vector<RowOfTable> expected = AllRows(world.latest());
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_TRUE(found == expected);
}

TEST(SavedRowsTest, OnlyRowsThatWereTouchedLaterAreShown) {
  TableWorld world(Tables());
  world.Push({{1, {1, 2}}}, {1, 1, 1, 1});
  world.MakeStep();
  world.Push({{1, {2, 3}}}, {1, 1, 1, 1});
  world.MakeStep();
  std::vector<RowId> ids;
  for (const RowOfTable& record : AllRows(world.latest(), 1)) ids.push_back(std::get<1>(record));
  EXPECT_THAT(ids, testing::UnorderedElementsAre(2, 3));
}

// Steps are merged meanwhile, rows are removed, and ids come back.
TEST(SavedRowsTest, WhatWasTouchedAfterAStepIsWhatTheRowsSayThemselves) {
  TableWorld world(Tables());
  std::vector<TableWorld::Snapshots> living;
  for (uint32_t step = 1; step <= 40; ++step) {
    StepOf(step, world);
    if (step % 7 == 0) living.push_back(world.latest());
  }
  for (const TableWorld::Snapshots& snapshots : living) {
    const std::vector<RowOfTable> all = AllRows(snapshots);
    for (const uint64_t after : {1, 3, 8, 20, 30, 39}) {
      std::vector<RowOfTable> expected;
      std::copy_if(all.begin(), all.end(), std::back_inserter(expected),
                   [&](const RowOfTable& row) { return std::get<2>(row) > after; });
      EXPECT_TRUE(AllRows(snapshots, after) == expected) << after;
    }
  }
}

}  // namespace
}  // namespace sluice
