// A request for rows is judged before anything is read, and its rows come in chunks of whole rows.

#include "server/rpc/wanted_rows.h"

#include <memory>
#include <string>
#include <vector>

#include "common/wire/layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each element of a row is 1000 × its table + its id.
class NumberedRows final : public RowSnapshot {
 public:
  explicit NumberedRows(std::shared_ptr<const Layout> layout) : layout_(std::move(layout)) {}

  void Read(uint32_t table, absl::Span<const RowId> ids, absl::Span<float> to) const override {
    const uint32_t width = layout_->tables()[table].width;
    ASSERT_EQ(to.size(), ids.size() * width);
    for (size_t i = 0; i < to.size(); ++i) to[i] = 1000.0f * table + ids[i / width];
  }
  bool Holds(RowId id) const override { return id < 1000; }
  void Find(uint32_t, RowId, absl::FunctionRef<void(const StoredRow&)>) const override {}
  void ForEachRow(uint32_t, uint32_t, Step,
                  absl::FunctionRef<void(const StoredRow&)>) const override {}
  void ForEachRemoved(uint32_t, uint32_t, Step, absl::FunctionRef<void(RowId)>) const override {}

 private:
  const std::shared_ptr<const Layout> layout_;
};

TableSpec TableOf(const std::string& name, uint32_t width) {
  TableSpec table;
  table.name = name;
  table.width = width;
  return table;
}

std::shared_ptr<const Layout> LayoutOf(std::vector<TableSpec> tables) {
  LayoutRange range;
  range.name = "w";
  range.shape = {2};
  range.length = 2;
  return std::make_shared<const Layout>(*Layout::Create({range}, std::move(tables)));
}

v1::PullRowsRequest RequestFor(const std::vector<RowIds>& rows) {
  v1::PullRowsRequest request;
  for (const RowIds& of_table : rows) *request.add_rows() = ToProto(of_table);
  return request;
}

std::vector<RowId> Ids(size_t count) {
  std::vector<RowId> ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = i;
  return ids;
}

class WantedRowsTest : public ::testing::Test {
 protected:
  absl::Status Judged(const std::vector<RowIds>& rows) const {
    return WantedRows::Create(RequestFor(rows), layout_).status();
  }

  std::shared_ptr<const Layout> layout_ = LayoutOf({TableOf("items", 2), TableOf("users", 3)});
};

TEST_F(WantedRowsTest, ReadsTheRowsOfAllTablesInTheOrderOfTheRequest) {
  auto wanted = WantedRows::Create(RequestFor({{0, {1, ~RowId{0} >> 1}}, {1, {7}}}), layout_);
  ASSERT_THAT(wanted, IsOk());
  EXPECT_EQ(wanted->size(), 7);
  const float large = static_cast<float>(~RowId{0} >> 1);
  EXPECT_THAT(wanted->Next(NumberedRows(layout_)),
              ElementsAre(1, 1, large, large, 1007, 1007, 1007));
  EXPECT_TRUE(wanted->done());
}

TEST_F(WantedRowsTest, TakesTheLargestId) { EXPECT_THAT(Judged({{0, {~RowId{0}}}}), IsOk()); }

TEST_F(WantedRowsTest, WantsNothingWithoutIds) {
  const auto wanted = WantedRows::Create(RequestFor({{0, {}}, {1, {}}}), layout_);
  ASSERT_THAT(wanted, IsOk());
  EXPECT_TRUE(wanted->done());
  EXPECT_EQ(wanted->size(), 0);
}

TEST_F(WantedRowsTest, CutsChunksBetweenRows) {
  // A chunk has room for 87381 rows of three elements, and for one element more.
  const size_t rows = kChunkElements / 3 + 1;
  auto wanted = WantedRows::Create(RequestFor({{1, Ids(rows)}}), layout_);
  ASSERT_THAT(wanted, IsOk());
  const NumberedRows from(layout_);
  EXPECT_EQ(wanted->Next(from).size(), 262143);
  EXPECT_FALSE(wanted->done());
  EXPECT_EQ(wanted->offset(), 262143);
  EXPECT_THAT(wanted->Next(from), ElementsAre(88381, 88381, 88381));
  EXPECT_TRUE(wanted->done());
}

TEST_F(WantedRowsTest, RefusesTablesThatDoNotAscend) {
  EXPECT_THAT(Judged({{1, {1}}, {0, {1}}}),
              IsError(Reason::kBadArgument, HasSubstr("table 0 after those of table 1")));
  EXPECT_THAT(Judged({{0, {1}}, {0, {2}}}),
              IsError(Reason::kBadArgument, HasSubstr("table 0 after those of table 0")));
}

TEST_F(WantedRowsTest, RefusesIdsThatDoNotAscend) {
  EXPECT_THAT(Judged({{0, {2, 1}}}), IsError(Reason::kBadArgument, HasSubstr("1 after 2")));
  EXPECT_THAT(Judged({{0, {2, 2}}}), IsError(Reason::kBadArgument, HasSubstr("2 after 2")));
}

TEST_F(WantedRowsTest, RefusesAnUnknownTable) {
  EXPECT_THAT(Judged({{2, {1}}}), IsError(Reason::kBadArgument, HasSubstr("less than 2")));
}

TEST_F(WantedRowsTest, RefusesAPartOfAnId) {
  v1::PullRowsRequest request;
  request.add_rows()->set_ids("1234567");
  EXPECT_THAT(WantedRows::Create(request, layout_).status(),
              IsError(Reason::kBadArgument, HasSubstr("7 bytes")));
}

TEST_F(WantedRowsTest, RefusesMoreIdsThanTheLimitInAllTables) {
  EXPECT_THAT(Judged({{0, Ids(200'000)}, {1, Ids(200'000)}}), IsOk());
  EXPECT_THAT(Judged({{0, Ids(200'000)}, {1, Ids(200'001)}}),
              IsError(Reason::kBadArgument, HasSubstr("400001 ids, expected at most 400000")));
}

TEST_F(WantedRowsTest, RefusesAModelWithoutTables) {
  layout_ = LayoutOf({});
  EXPECT_THAT(Judged({}), IsError(Reason::kBadArgument, HasSubstr("has no tables")));
}

TEST_F(WantedRowsTest, RefusesARowOfAnotherServer) {
  const auto here = WantedRows::Create(RequestFor({{0, {1, 999}}}), layout_);
  EXPECT_THAT(here->CheckHeldBy(NumberedRows(layout_)), IsOk());
  const auto elsewhere = WantedRows::Create(RequestFor({{0, {1, 1000}}}), layout_);
  EXPECT_THAT(elsewhere->CheckHeldBy(NumberedRows(layout_)),
              IsError(Reason::kBadArgument, HasSubstr("row 1000 of table")));
}

}  // namespace
}  // namespace sluice
