#include "tools/ctl/render/tables_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

v1::ListTablesResponse OneTable() {
  v1::ListTablesResponse tables;
  v1::TableState& state = *tables.add_tables();
  state.mutable_table()->set_name("items");
  state.mutable_table()->set_width(16);
  state.set_optimizer("adagrad");
  state.set_rows(1234);
  return tables;
}

TEST(TablesTextTest, SaysThatAModelHasNone) {
  EXPECT_EQ(TablesText({}), "the model has no tables\n");
}

TEST(TablesTextTest, ATableThatNobodyHasReadHasNoHitRate) {
  EXPECT_THAT(TablesText(OneTable()), ContainsRegex("items +16  adagrad +1234 .* -    0\n"));
}

TEST(TablesTextTest, ShowsTheHitRateAndTheAge) {
  v1::ListTablesResponse tables = OneTable();
  tables.mutable_tables(0)->set_reads(1000);
  tables.mutable_tables(0)->set_hits(875);
  tables.mutable_tables(0)->set_mean_age(41.7);
  EXPECT_THAT(TablesText(tables), AllOf(HasSubstr("HITS"), ContainsRegex("87.5 % +42\n")));
}

TEST(TablesTextTest, ListsTheHottestRows) {
  v1::TableState state;
  EXPECT_EQ(HottestText(state), "no row is read much more often than others\n");
  v1::HotRow& row = *state.add_hottest();
  row.set_id(17);
  row.set_reads(6400);
  EXPECT_THAT(HottestText(state), ContainsRegex("HOTTEST +READS\n +17 +6400\n"));
}

}  // namespace
}  // namespace sluice
