#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/tables/table_world.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

TableSpec WithMost(uint64_t rows, uint32_t admit_after = 0) {
  TableSpec table = TableOf("items", 2);
  table.max_rows = rows;
  table.admit_after = admit_after;
  return table;
}

absl::Status Fits(TableWorld& world, const std::vector<RowIds>& ids) {
  size_t elements = 0;
  for (const RowIds& entry : ids) {
    elements += entry.ids.size() * world.layout()->tables()[entry.table].width;
  }
  return world.server().CheckFits(*StagedRowsOf(world.layout(), ids, Values(elements)));
}

TEST(RowLimitsTest, NewRowsAboveTheMostAreRefused) {
  TableWorld world({TableOf("users", 1), WithMost(3)});
  world.Push({{1, {1, 2}}}, {1, 1, 1, 1});
  world.MakeStep();
  EXPECT_THAT(Fits(world, {{0, {1, 2, 3, 4}}, {1, {3}}}), IsOk());
  EXPECT_THAT(Fits(world, {{1, {1, 2, 3}}}), IsOk());
  EXPECT_THAT(Fits(world, {{1, {2, 3, 4}}}),
              IsError(Reason::kTableFull, HasSubstr("\"items\" has 2 rows on this server, and the "
                                                    "2 new ones of the push would be more than "
                                                    "its max_rows, 3; raise max_rows")));
}

TEST(RowLimitsTest, SeveralEntriesOfATableCountTogether) {
  TableWorld world({WithMost(3)});
  EXPECT_THAT(Fits(world, {{0, {1, 2}}, {0, {3}}}), IsOk());
  EXPECT_THAT(Fits(world, {{0, {1, 2}}, {0, {3, 4}}}), IsError(Reason::kTableFull, HasSubstr("4")));
}

TEST(RowLimitsTest, IdsThatWillWaitAreNoRows) {
  TableWorld world({WithMost(1, 2)});
  EXPECT_THAT(Fits(world, {{0, {1, 2, 3}}}), IsOk());
  world.Push({{0, {1, 2}}}, {1, 1, 1, 1});
  world.MakeStep();
  EXPECT_THAT(Fits(world, {{0, {1, 3, 4}}}), IsOk());
  EXPECT_THAT(Fits(world, {{0, {1, 2}}}), IsError(Reason::kTableFull, HasSubstr("\"items\"")));
}

TEST(RowLimitsTest, RowsThatTakeTooMuchMemoryAreRefused) {
  TableWorld::Options options;
  options.memory.most_bytes = 100'000;
  TableWorld world({TableOf("items", 250)}, options);
  std::vector<RowId> ids(50);
  for (RowId id = 0; id < 50; ++id) ids[id] = id;
  EXPECT_THAT(Fits(world, {{0, ids}}), IsOk());
  world.Push({{0, ids}}, Values(50 * 250, 1));
  world.MakeStep();
  EXPECT_THAT(Fits(world, {{0, ids}}), IsOk());
  for (RowId& id : ids) id += 50;
  EXPECT_THAT(Fits(world, {{0, ids}}),
              IsError(Reason::kTableFull, HasSubstr("there is room for 100000")));
}

// For each id another one, in the same bucket. Ascending.
std::vector<RowId> OthersInTheBucketsOf(const std::vector<RowId>& ids) {
  std::multiset<uint32_t> buckets;
  for (const RowId id : ids) buckets.insert(BucketOf(id));
  std::vector<RowId> others;
  for (RowId id = 1000; others.size() < ids.size(); ++id) {
    const auto bucket = buckets.find(BucketOf(id));
    if (bucket == buckets.end()) continue;
    others.push_back(id);
    buckets.erase(bucket);
  }
  return others;
}

TEST(RowLimitsTest, NewRowsTakeTheMemoryOfRemovedOnes) {
  TableSpec table = TableOf("items", 250);
  table.evict_after = 1;
  TableWorld::Options options;
  options.memory.most_bytes = 100'000;
  TableWorld world({table}, options);
  std::vector<RowId> ids(90);
  std::iota(ids.begin(), ids.end(), 0);
  world.Push({{0, ids}}, Values(90 * 250, 1));
  world.MakeStep();
  const std::vector<RowId> others = OthersInTheBucketsOf(ids);
  ASSERT_THAT(Fits(world, {{0, others}}), IsError(Reason::kTableFull, _));
  for (uint32_t turn = 0; turn <= kRowBuckets; ++turn) world.MakeStep();
  ASSERT_EQ(world.status(0).rows, 0);
  EXPECT_THAT(Fits(world, {{0, others}}), IsOk());
}

// Bytes per row, for each byte of its numbers, of a table with so many rows.
double BytesPerByte(uint32_t width, RowId rows) {
  TableWorld world({TableOf("items", width)});
  const Values elements(width);
  for (RowId id = 0; id < rows; ++id) world.server().Load(0, {id, Step(1), 0, elements});
  return static_cast<double>(world.status(0).bytes) / static_cast<double>(rows * width * 4);
}

TEST(RowLimitsTest, ARowTakesLittleMoreThanItsNumbers) {
  for (const RowId rows : {50'000, 70'000, 100'000}) {
    EXPECT_LT(BytesPerByte(64, rows), 1.3) << rows;
    EXPECT_LT(BytesPerByte(16, rows), 2) << rows;
  }
  EXPECT_LT(BytesPerByte(64, 300) * 300 * 64 * 4, 512'000);  // a small table is small
}

}  // namespace
}  // namespace sluice
