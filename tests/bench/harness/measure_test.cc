#include "tools/bench/harness/measure.h"

#include <set>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Row RowThatNeeds(const std::string& name, std::vector<Need> needs) {
  Row row;
  row.name = name;
  row.program = "no/such_program";
  row.needs = std::move(needs);
  return row;
}

const Need kThere = {"a shell", {"true"}};
const Need kMissing = {"a package", {"false"}};
const Need kUnheardOf = {"a program", {"no-such-program-anywhere"}};

TEST(MeasureTest, SkipsARowAndNamesWhatItNeeds) {
  const Availability found =
      FindAvailable({RowThatNeeds("one", {kThere, kMissing}), RowThatNeeds("two", {kThere}),
                     RowThatNeeds("three", {}), RowThatNeeds("four", {kUnheardOf})},
                    Programs());
  EXPECT_THAT(found.rows, ElementsAre(Field(&Row::name, "two"), Field(&Row::name, "three")));
  EXPECT_THAT(found.skipped, ElementsAre("one needs a package", "four needs a program"));
}

TEST(MeasureTest, TellsOfACellThatFailed) {
  const Cell cell = {RowThatNeeds("one", {}), 25000000, 2};
  const Outcome outcome = MeasureCells({cell}, Programs(), 1, 2, ProgressOutput());
  EXPECT_THAT(outcome.results, IsEmpty());
  EXPECT_THAT(outcome.failures,
              ElementsAre(HasSubstr("one, 100.0 MB, 2 workers: cannot start one's server")));
}

TEST(RowsTest, HaveNamesOfTheirOwnAndSluiceIsFirst) {
  const std::vector<Row> rows = AllRows("python");
  std::set<std::string> names;
  for (const Row& row : rows) names.insert(row.name);
  EXPECT_EQ(names.size(), rows.size());
  EXPECT_TRUE(IsSluice(rows.front()));
}

}  // namespace
}  // namespace sluice::bench
