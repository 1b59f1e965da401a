#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/tables/table_world.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TableSpec EvictingAfter(uint64_t steps, uint32_t admit_after = 0) {
  TableSpec table = TableOf("items", 1);
  table.evict_after = steps;
  table.admit_after = admit_after;
  return table;
}

// Makes steps, which touch nothing, up to the next one that looks through the row's bucket.
void StepToTurnOf(RowId id, TableWorld& world) {
  do {
    world.MakeStep();
  } while (world.step() % kRowBuckets != BucketOf(id));
}

std::vector<RowId> RemovedAfter(const TableWorld& world, RowId id, uint64_t after) {
  std::vector<RowId> removed;
  const uint32_t bucket = BucketOf(id);
  world.latest()[bucket % world.servers()]->ForEachRemoved(
      0, bucket, Step(after), [&](RowId gone) { removed.push_back(gone); });
  return removed;
}

TEST(EvictionTest, ARowThatNothingTouchesIsRemovedInItsBucketsTurn) {
  TableWorld world({EvictingAfter(300)});
  world.Push({{0, {5}}}, {1});
  world.MakeStep();
  while (world.step() < 301) world.MakeStep();
  EXPECT_EQ(world.status(0).rows, 1);
  StepToTurnOf(5, world);
  EXPECT_LE(world.step(), 301 + kRowBuckets);
  EXPECT_EQ(world.status(0).rows, 0);
  EXPECT_EQ(world.status(0).removed, 1);
  EXPECT_THAT(world.Row(0, 5), ElementsAre(0));
}

TEST(EvictionTest, ATouchKeepsARow) {
  TableWorld world({EvictingAfter(200)});
  for (int step = 0; step < 800; ++step) {
    if (step % 150 == 0) world.Push({{0, {5}}}, {1});
    world.MakeStep();
  }
  EXPECT_EQ(world.status(0).removed, 0);
  EXPECT_THAT(world.Row(0, 5), ElementsAre(-6));
}

// With several threads, too, the step's touch comes before its removals.
TEST(EvictionTest, ATouchInTheBucketsTurnKeepsTheRows) {
  constexpr uint32_t kBucket = 9;
  TableWorld::Options options;
  options.threads = 4;
  TableWorld world({EvictingAfter(1)}, options);
  std::vector<RowId> ids;
  for (RowId id = 0; ids.size() < 1000; ++id) {
    if (BucketOf(id) == kBucket) ids.push_back(id);
  }
  for (int touches = 1; touches <= 20; ++touches) {
    while (world.step() % kRowBuckets != kBucket - 1) world.MakeStep();
    world.Push({{0, ids}}, Values(ids.size(), 1));
    world.MakeStep();
    ASSERT_EQ(world.status(0).rows, ids.size());
    ASSERT_THAT(world.Rows(world.latest(), 0, ids), Each(-touches));
  }
  EXPECT_EQ(world.status(0).removed, 0);
}

TEST(EvictionTest, AnIdThatComesBackBeginsAsAtFirst) {
  TableSpec table = EvictingAfter(1);
  table.initializer = {RowInitializerKind::kUniform, 0.5f, 1};
  AdagradOptions adagrad;
  TableWorld world({table}, {{adagrad}});
  const Values first = (world.Start(), world.Row(0, 5));
  world.Push({{0, {5}}}, {1});
  world.MakeStep();
  const Values stepped = world.Row(0, 5);
  world.MakeStep();
  StepToTurnOf(5, world);
  EXPECT_EQ(world.Row(0, 5), first);
  world.Push({{0, {5}}}, {1});
  world.MakeStep();
  EXPECT_EQ(world.Row(0, 5), stepped);
}

TEST(EvictionTest, WaitingIdsAreForgottenToo) {
  TableWorld world({EvictingAfter(1, 2)});
  world.Push({{0, {5}}}, {1});
  world.MakeStep();
  world.MakeStep();
  StepToTurnOf(5, world);
  EXPECT_EQ(world.status(0).waiting, 0);
  EXPECT_EQ(world.status(0).removed, 0);  // no row
  world.Push({{0, {5}}}, {1});
  world.MakeStep();
  EXPECT_EQ(world.status(0).rows, 0);
}

TEST(EvictionTest, OlderSnapshotsKeepARowThatWasRemovedAndCameBack) {
  TableWorld world({EvictingAfter(1)});
  world.Push({{0, {5}}}, {1});
  world.MakeStep();
  const TableWorld::Snapshots old = world.latest();
  world.MakeStep();
  StepToTurnOf(5, world);
  const TableWorld::Snapshots without = world.latest();
  EXPECT_THAT(world.Row(old, 0, 5), ElementsAre(-1));
  world.Push({{0, {5}}}, {7});
  world.MakeStep();
  EXPECT_THAT(world.Row(old, 0, 5), ElementsAre(-1));
  EXPECT_THAT(world.Row(without, 0, 5), ElementsAre(0));
  EXPECT_THAT(world.Row(0, 5), ElementsAre(-7));
}

TEST(EvictionTest, RemovalsAreKnownUntilTheyAreForgotten) {
  TableWorld world({EvictingAfter(1)});
  world.Push({{0, {5}}}, {1});
  world.MakeStep();
  const TableWorld::Snapshots old = world.latest();
  world.MakeStep();
  StepToTurnOf(5, world);
  const uint64_t removed_at = world.step();
  EXPECT_THAT(RemovedAfter(world, 5, removed_at - 1), ElementsAre(5));
  EXPECT_THAT(RemovedAfter(world, 5, removed_at), IsEmpty());
  old[0]->ForEachRemoved(0, BucketOf(5), Step(0), [](RowId) { FAIL(); });
  world.server().ForgetRemovals(Step(removed_at));
  EXPECT_THAT(RemovedAfter(world, 5, 0), IsEmpty());
}

TEST(EvictionTest, AnyNumberOfServersRemovesTheSameRows) {
  std::vector<TableStatus> found;
  for (const uint32_t servers : {1, 3}) {
    TableWorld::Options options;
    options.servers = servers;
    TableWorld world({EvictingAfter(40)}, options);
    for (RowId id = 0; id < 500; ++id) {
      world.Push({{0, {id, id + 1000}}}, {1, 1});
      world.MakeStep();
    }
    found.push_back(world.status(0));
  }
  EXPECT_EQ(found[0].rows, found[1].rows);
  EXPECT_EQ(found[0].removed, found[1].removed);
  EXPECT_GT(found[0].removed, 100);
}

}  // namespace
}  // namespace sluice
