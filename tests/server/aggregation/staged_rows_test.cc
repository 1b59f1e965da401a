#include "server/aggregation/staged_rows.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Tables of rows of 2, 3 and 2 elements.
std::shared_ptr<const Layout> WithTables() {
  std::vector<TableSpec> tables(3);
  for (size_t i = 0; i < tables.size(); ++i) {
    tables[i].name = i == 0 ? "items" : i == 1 ? "users" : "shops";
    tables[i].width = i == 1 ? 3 : 2;
  }
  return std::make_shared<const Layout>(
      *Layout::Create(LayoutOf({{"bias"}}).ranges(), std::move(tables)));
}

// Of so many rows of items and users.
uint64_t BytesOf(uint64_t items, uint64_t users) { return RowBytes(items, 2) + RowBytes(users, 3); }

absl::Status Add(StagedRows& rows, TensorChunk chunk) {
  const absl::Status reserved = rows.Reserve(chunk);
  if (reserved.ok()) rows.Place(std::move(chunk));
  return reserved;
}

TEST(StagedRowsTest, HoldsRowsOfSeveralTables) {
  StagedRows rows(WithTables(), BytesOf(2, 1));
  ASSERT_THAT(rows.AddIds({0, {4, 9}}), IsOk());
  ASSERT_THAT(rows.AddIds({1, {4}}), IsOk());
  ASSERT_THAT(Add(rows, ChunkOf(3, {4, 5, 6, 7})), IsOk());
  ASSERT_THAT(Add(rows, ChunkOf(0, {1, 2, 3})), IsOk());
  ASSERT_THAT(rows.CheckComplete(), IsOk());
  rows.Seal();
  EXPECT_EQ(rows.rows(), 3u);
  EXPECT_EQ(rows.bytes(), 28u);
  ASSERT_EQ(rows.ids().size(), 2u);
  EXPECT_EQ(rows.ids()[1].table, 1u);
  Values values(7);
  rows.values()->CopyTo(0, absl::MakeSpan(values));
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4, 5, 6, 7));
}

TEST(StagedRowsTest, APushWithoutRowsIsComplete) {
  StagedRows rows(WithTables(), 0);
  EXPECT_THAT(rows.AddIds({0, {}}), IsOk());
  EXPECT_THAT(rows.CheckComplete(), IsOk());
  rows.Seal();
  EXPECT_EQ(rows.values(), nullptr);
  EXPECT_EQ(rows.bytes(), 0u);
  EXPECT_TRUE(rows.ids().empty());
}

TEST(StagedRowsTest, IdsOfATableMayComeInSeveralParts) {
  StagedRows rows(WithTables(), BytesOf(3, 0));
  EXPECT_THAT(rows.AddIds({0, {4}}), IsOk());
  EXPECT_THAT(rows.AddIds({0, {}}), IsOk());
  EXPECT_THAT(rows.AddIds({0, {5, 6}}), IsOk());
  EXPECT_EQ(rows.rows(), 3u);
  ASSERT_EQ(rows.ids().size(), 1u);
  EXPECT_THAT(rows.ids()[0].ids, ElementsAre(4, 5, 6));
}

TEST(StagedRowsTest, IdsMayComeOneByOneHoweverManyTheyAre) {
  constexpr RowId kIds = Layout::kMaxRanges + 1;
  StagedRows rows(WithTables(), BytesOf(kIds, 0));
  for (RowId id = 0; id < kIds; ++id) ASSERT_THAT(rows.AddIds({0, {id}}), IsOk());
  ASSERT_THAT(Add(rows, ChunkOf(2 * kIds - 1, {7})), IsOk());
  EXPECT_EQ(rows.ElementName(2 * kIds - 1), "row 1000000 of items, element 1,");
}

TEST(StagedRowsTest, RefusesIdsThatDoNotFollow) {
  for (const RowId next : {RowId{3}, RowId{4}}) {
    StagedRows rows(WithTables(), BytesOf(9, 0));
    ASSERT_THAT(rows.AddIds({0, {2, 4}}), IsOk());
    EXPECT_THAT(rows.AddIds({0, {next}}),
                IsError(Reason::kBadArgument, HasSubstr("after 4; sort them, and send each once")));
  }
}

TEST(StagedRowsTest, RefusesTablesThatDoNotFollow) {
  StagedRows rows(WithTables(), BytesOf(9, 9));
  ASSERT_THAT(rows.AddIds({1, {2}}), IsOk());
  EXPECT_THAT(
      rows.AddIds({0, {4}}),
      IsError(Reason::kBadArgument, HasSubstr("have ids of table 0 after those of table 1")));
}

TEST(StagedRowsTest, RefusesMoreThanWasAnnounced) {
  StagedRows rows(WithTables(), BytesOf(1, 1) - 1);
  ASSERT_THAT(rows.AddIds({0, {2}}), IsOk());
  EXPECT_THAT(rows.AddIds({1, {2}}),
              IsError(Reason::kBadArgument,
                      HasSubstr("have 36 bytes or more, and its header announced 35")));
}

TEST(StagedRowsTest, TheOtherRowsOfAPushAreOnOtherServers) {
  StagedRows rows(WithTables(), BytesOf(2, 0));
  ASSERT_THAT(rows.AddIds({0, {2}}), IsOk());
  ASSERT_THAT(Add(rows, ChunkOf(0, {1, 2})), IsOk());
  EXPECT_THAT(rows.CheckComplete(), IsOk());
}

TEST(StagedRowsTest, RefusesAChunkBeforeTheIds) {
  StagedRows rows(WithTables(), BytesOf(1, 0));
  EXPECT_THAT(Add(rows, ChunkOf(0, {1, 2})),
              IsError(Reason::kBadChunk, HasSubstr("the push has no ids of rows; send them")));
}

TEST(StagedRowsTest, RefusesIdsAfterAChunk) {
  StagedRows rows(WithTables(), BytesOf(2, 0));
  ASSERT_THAT(rows.AddIds({0, {2}}), IsOk());
  ASSERT_THAT(Add(rows, ChunkOf(0, {1})), IsOk());
  EXPECT_THAT(rows.AddIds({0, {3}}),
              IsError(Reason::kBadArgument, HasSubstr("have ids after a chunk of rows")));
}

TEST(StagedRowsTest, RefusesElementsOutsideTheRowsAndElementsTwice) {
  StagedRows rows(WithTables(), BytesOf(1, 0));
  ASSERT_THAT(rows.AddIds({0, {2}}), IsOk());
  EXPECT_THAT(Add(rows, ChunkOf(1, {1, 2})),
              IsError(Reason::kBadChunk, HasSubstr("outside the vector of 2 elements")));
  ASSERT_THAT(Add(rows, ChunkOf(0, {1})), IsOk());
  EXPECT_THAT(Add(rows, ChunkOf(0, {1})), IsError(Reason::kBadChunk, HasSubstr("overlaps")));
}

TEST(StagedRowsTest, SaysThatElementsAreMissing) {
  StagedRows rows(WithTables(), BytesOf(1, 0));
  ASSERT_THAT(rows.AddIds({0, {2}}), IsOk());
  EXPECT_THAT(rows.CheckComplete(), IsError(Reason::kBadChunk, HasSubstr("rows of the push are")));
  ASSERT_THAT(Add(rows, ChunkOf(0, {1})), IsOk());
  EXPECT_THAT(rows.CheckComplete(), IsError(Reason::kBadChunk, HasSubstr("1 of 2 arrived")));
}

TEST(StagedRowsTest, NamesElementsByTheirRows) {
  StagedRows rows(WithTables(), BytesOf(2, 2));
  ASSERT_THAT(rows.AddIds({0, {4, 9}}), IsOk());
  ASSERT_THAT(rows.AddIds({1, {4, 17}}), IsOk());
  EXPECT_EQ(rows.ElementName(0), "row 4 of items, element 0,");
  EXPECT_EQ(rows.ElementName(3), "row 9 of items, element 1,");
  EXPECT_EQ(rows.ElementName(4), "row 4 of users, element 0,");
  EXPECT_EQ(rows.ElementName(9), "row 17 of users, element 2,");
  EXPECT_EQ(rows.ElementName(10), "an element of a row");
}

TEST(StagedRowsTest, EncodedChunksCountTheirElements) {
  StagedRows rows(WithTables(), BytesOf(2, 0));
  ASSERT_THAT(rows.AddIds({0, {2, 3}}), IsOk());
  TensorChunk chunk;
  chunk.offset = 1;
  chunk.encoded.emplace();
  chunk.encoded->how.count = 4;
  EXPECT_THAT(rows.Reserve(chunk),
              IsError(Reason::kBadChunk, HasSubstr("chunk of 4 elements at offset 1")));
  chunk.encoded->how.count = 3;
  ASSERT_THAT(rows.Reserve(chunk), IsOk());
  rows.Place(ChunkOf(1, {2, 3, 4}));  // decoded
  ASSERT_THAT(Add(rows, ChunkOf(0, {1})), IsOk());
  EXPECT_THAT(rows.CheckComplete(), IsOk());
}

}  // namespace
}  // namespace sluice
