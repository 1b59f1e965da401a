// The models with tables, on the first values of their rows. tests/system/table_models_test.cc
// trains them.

#include "worker/torch/table_models/table_models.h"

#include <torch/torch.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "worker/data/tables/click_data.h"
#include "worker/data/tables/load_table_data.h"
#include "worker/torch/table_models/click_test.h"
#include "worker/torch/training/evaluator.h"
#include "worker/torch/training/gathered_rows.h"
#include "worker/torch/training/trained_model.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

ModelChoice ChoiceOf(const std::string& name) {
  return {name, SampleForm(), nullptr, LoadTableData(name, "").value()};
}

TEST(ClickTestTest, TheAreaCountsThePairsThatAreInOrder) {
  const torch::Tensor odds = torch::tensor({1.0F, 2.0F, 3.0F, 4.0F});
  EXPECT_EQ(AreaUnderCurve(odds, torch::tensor({0.0F, 1.0F, 0.0F, 1.0F})), 0.75);
  EXPECT_EQ(AreaUnderCurve(odds, torch::tensor({0.0F, 0.0F, 1.0F, 1.0F})), 1);
  EXPECT_EQ(AreaUnderCurve(odds, torch::tensor({1.0F, 1.0F, 0.0F, 0.0F})), 0);
}

// Nobody can guess the clicks of the made data better.
TEST(ClickTestTest, TheBestGuessIsTheOddsThatTheClicksWereDrawnWith) {
  const ClickData data;
  const TestResult best =
      TestOfClicks(torch::tensor(data.OddsOf(data.test())), torch::tensor(data.test().targets));
  EXPECT_NEAR(best.loss, 0.1385, 0.02);
  EXPECT_NEAR(best.metrics.at(0).value, 0.9876, 0.01);
}

class TableModelsOnFirstRowsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TableModelsOnFirstRowsTest, HaveTheLossOfTensorsInThisProcess) {
  const ModelChoice choice = ChoiceOf(GetParam());
  torch::manual_seed(3);
  auto evaluator = Evaluator::Make(choice, 1);
  ASSERT_THAT(evaluator, IsOk());
  evaluator->SetFirstRows();
  torch::manual_seed(3);
  const auto local = MakeTrainedModel(choice, RowsAre::kInThisProcess);
  const TestResult expected = local->Test(nullptr);
  const auto found = evaluator->Measure();
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->samples, 20'000);
  EXPECT_EQ(found->loss, expected.loss);
  EXPECT_THAT(found->metrics, SizeIs(expected.metrics.size()));
}

TEST_P(TableModelsOnFirstRowsTest, AreTestedOnTheRowsThatWereWritten) {
  auto evaluator = Evaluator::Make(ChoiceOf(GetParam()), 1);
  ASSERT_THAT(evaluator, IsOk());
  evaluator->SetFirstRows();
  const double first = evaluator->Measure()->loss;
  const RowIds& of_table = evaluator->wanted_rows().front();
  const uint32_t width = evaluator->layout().tables()[of_table.table].width;
  evaluator->SetRow(of_table.table, of_table.ids.front(), std::vector<float>(width, 5));
  EXPECT_NE(evaluator->Measure()->loss, first);
}

INSTANTIATE_TEST_SUITE_P(All, TableModelsOnFirstRowsTest,
                         ::testing::Values("dlrm", "matrix-factorization"),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           return info.param == "dlrm" ? "Dlrm" : "MatrixFactorization";
                         });

TEST(MakeTableModelTest, RefusesOtherNames) {
  EXPECT_THAT([] { MakeTableModel("lenet", RowsAre::kOnServers); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("dlrm, matrix-factorization")));
}

// Two tables of rows with one element, that begin with zeroes.
std::shared_ptr<GatheredRows> TwoTables() {
  TableSpec table;
  table.width = 1;
  table.name = "items";
  TableSpec users = table;
  users.name = "users";
  return std::make_shared<GatheredRows>(std::vector<TableSpec>{table, users});
}

std::vector<float> RowsOf(GatheredRows& rows, uint32_t table, const std::vector<RowId>& ids) {
  std::vector<float> read(ids.size(), -1);
  rows.Start(table, ids)->Read(absl::MakeSpan(read));
  return read;
}

TEST(GatheredRowsTest, GivesZeroesWhileItNotesAndThenWhatWasWritten) {
  const auto rows = TwoTables();
  EXPECT_THAT(RowsOf(*rows, 1, {4, 9}), ElementsAre(0, 0));
  EXPECT_THAT(RowsOf(*rows, 1, {2, 4}), ElementsAre(0, 0));
  rows->EndNotes();
  ASSERT_THAT(rows->wanted(), SizeIs(1));
  EXPECT_EQ(rows->wanted()[0].table, 1u);
  EXPECT_THAT(rows->wanted()[0].ids, ElementsAre(2, 4, 9));
  rows->values()[0] = 20;
  const std::vector<float> row = {40};
  rows->Set(1, 4, row);
  rows->Set(1, 5, row);
  rows->Set(0, 4, row);
  EXPECT_THAT(RowsOf(*rows, 1, {2, 4}), ElementsAre(20, 40));
  rows->SetFirst();
  EXPECT_THAT(RowsOf(*rows, 1, {2, 4, 9}), ElementsAre(0, 0, 0));
}

TEST(GatheredRowsTest, RefusesARowThatItDidNotNote) {
  const auto rows = TwoTables();
  rows->EndNotes();
  EXPECT_THAT([&] { RowsOf(*rows, 0, {7}); },
              ThrowsMessage<std::logic_error>(HasSubstr("looks up row 7 of table \"items\"")));
}

}  // namespace
}  // namespace sluice
