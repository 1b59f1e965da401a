#include "common/checkpoint/reading/rows_format.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/rows_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/rows/rows_writer.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/rows_in_memory.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

RowsHeader FullHeader() {
  return {"job", Incarnation(1), Step(9), absl::nullopt, {}, {{"items", 2, {"m", "v"}}}};
}

TEST(RowsName, IsReadAsItIsWritten) {
  const RowsName one = {Incarnation(2), Step(30)};
  EXPECT_EQ(one.FileName(), "rows-000002-000000000030.sluice");
  const RowsName striped = {Incarnation(2), Step(30), {1, 3}};
  EXPECT_EQ(striped.FileName(), "rows-000002-000000000030-1-of-3.sluice");
  for (const RowsName& name : {one, striped}) {
    const auto parsed = RowsName::Parse(name.FileName());
    ASSERT_TRUE(parsed.has_value());
    EXPECT_FALSE(*parsed < name || name < *parsed);
  }
  for (const char* other : {"rows-2-30.sluice", "rows-000002-000000000030.sluice.unfinished",
                            "stripe-000002-000000000030-1-of-3.safetensors", ""}) {
    EXPECT_FALSE(RowsName::Parse(other).has_value()) << other;
  }
}

TEST(RowsHeaderTest, ComesBack) {
  RowsHeader header = FullHeader();
  header.base = Step(5);
  header.place = {2, 3};
  const auto again = DecodeRowsHeader(EncodeRowsHeader(header));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->job_id, "job");
  EXPECT_EQ(again->incarnation, Incarnation(1));
  EXPECT_EQ(again->step, Step(9));
  EXPECT_EQ(again->base, Step(5));
  EXPECT_EQ(again->place, (StripePlace{2, 3}));
  EXPECT_EQ(again->tables, header.tables);
}

TEST(RowsHeaderTest, WhatItMayNotSayIsRefused) {
  std::vector<RowsHeader> wrong(5, FullHeader());
  wrong[0].base = Step(9);
  wrong[1].place = {1, 1};
  wrong[2].place = {0, 1000};
  wrong[3].tables[0].width = 0;
  wrong[4].tables[0].slots = RowSlots(9, "m");
  for (const RowsHeader& header : wrong) {
    EXPECT_THAT(DecodeRowsHeader(EncodeRowsHeader(header)),
                HasCode(absl::StatusCode::kDataLoss, ::testing::_));
  }
}

// The blocks that are written of these rows, of one table with 6 elements in a row.
std::vector<RowsBlock> BlocksOf(const RowsInMemory& rows, RowsHeader header = FullHeader()) {
  FaultyFiles files;
  const auto file = files.Create("d/rows");
  const auto written = WriteRows(header, *rows.Snapshot(), **file);
  EXPECT_THAT(written, IsOk());
  const auto readable = files.Open("d/rows");
  RowsReader reader(**readable);
  EXPECT_THAT(reader.ReadHeader(), IsOk());
  std::vector<RowsBlock> blocks;
  for (;;) {
    const auto more = reader.Next();
    EXPECT_THAT(more, IsOk());
    if (!more.ok() || !*more) break;
    blocks.push_back(reader.block());
  }
  EXPECT_EQ(reader.checksum(), *written);
  return blocks;
}

TEST(RowsFile, HasABlockForEachBucketWithRows) {
  RowsInMemory rows;
  const RowId one = IdsInBucket(7, 1)[0];
  const std::vector<RowId> two = IdsInBucket(9, 2);
  rows.Make(3, {0, two[1]}, {1, 2, 3, 4, 5, 6});
  rows.Wait(4, {0, two[0]}, 2);
  rows.Make(5, {0, one}, {6, 5, 4, 3, 2, 1});
  const std::vector<RowsBlock> blocks = BlocksOf(rows);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].bucket, 7u);
  EXPECT_THAT(blocks[0].ids, ElementsAre(one));
  EXPECT_EQ(blocks[1].bucket, 9u);
  EXPECT_THAT(blocks[1].ids, ElementsAre(two[0], two[1]));
  EXPECT_THAT(blocks[1].touched, ElementsAre(4, 3));
  EXPECT_THAT(blocks[1].touches, ElementsAre(2, 0));
  EXPECT_THAT(blocks[1].elements, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(RowsFile, WithoutRowsHasNoBlocks) { EXPECT_TRUE(BlocksOf(RowsInMemory()).empty()); }

// 6 elements, the id and the steps are 44 bytes: 23831 rows are in 1 MiB.
TEST(RowsFile, ABlockHasNoMoreThanOneMebibyte) {
  RowsInMemory rows;
  const std::vector<RowId> ids = IdsInBucket(0, 30000);
  for (const RowId id : ids) rows.Make(1, {0, id}, {1, 2, 3, 4, 5, 6});
  const std::vector<RowsBlock> blocks = BlocksOf(rows);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].ids.size(), 23831u);
  EXPECT_EQ(blocks[1].ids.size(), 30000u - 23831u);
}

TEST(RowsFile, ARowThatIsLargerIsABlock) {
  RowsHeader header = FullHeader();
  header.tables[0].width = 65536;
  header.tables[0].slots = {"a", "b", "c", "d"};
  RowsInMemory rows;
  for (const RowId id : IdsInBucket(3, 2)) rows.Make(1, {0, id}, std::vector<float>(5 * 65536, 1));
  const std::vector<RowsBlock> blocks = BlocksOf(rows, header);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[1].elements, std::vector<float>(5 * 65536, 1));
}

TEST(RowsFile, ADifferenceHasWhatIsNewerThanItsBase) {
  RowsHeader header = FullHeader();
  header.base = Step(4);
  RowsInMemory rows;
  const std::vector<RowId> ids = IdsInBucket(3, 4);
  for (const RowId id : ids) rows.Make(4, {0, id}, {1, 2, 3, 4, 5, 6});
  rows.Remove(4, {0, ids[3]});
  rows.Remove(5, {0, ids[0]});
  rows.Remove(5, {0, ids[1]});
  rows.Make(6, {0, ids[1]}, {0, 0, 0, 0, 0, 1});
  const std::vector<RowsBlock> blocks = BlocksOf(rows, header);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_THAT(blocks[0].ids, ElementsAre(ids[1]));
  EXPECT_THAT(blocks[0].removed, ::testing::UnorderedElementsAre(ids[0], ids[1]));
}

TEST(RowsFile, HasTheBucketsOfItsServerOnly) {
  RowsHeader header = FullHeader();
  header.place = {2, 3};
  RowsInMemory rows;
  for (RowId id = 0; id < 1000; ++id) rows.Make(1, {0, id}, {1, 2, 3, 4, 5, 6});
  for (const RowsBlock& block : BlocksOf(rows, header)) EXPECT_EQ(block.bucket % 3, 2u);
}

}  // namespace
}  // namespace sluice
