#include "tools/evaluate/evaluation_report.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

ParametersId At(uint64_t step) { return {"here:1", Incarnation(2), Step(step)}; }

TEST(EvaluationReportTest, WritesALineForEachAndWhichWasTheBest) {
  std::ostringstream out;
  auto report = EvaluationReport::Open(out, "");
  ASSERT_THAT(report, IsOk());
  ASSERT_THAT((*report)->Add(At(10), ResultOf({100, 0.5, 0.75, 1}), absl::Milliseconds(250)),
              IsOk());
  ASSERT_THAT((*report)->Add(At(20), ResultOf({100, 0.25, 0.5, 1}), absl::Seconds(1)), IsOk());
  ASSERT_THAT((*report)->Finish(), IsOk());
  EXPECT_EQ(out.str(),
            "step 10  loss 0.5000  top-1 0.7500  top-5 1.0000  0.25 s\n"
            "step 20  loss 0.2500  top-1 0.5000  top-5 1.0000  1.00 s\n"
            "evaluations 2, the best at step 10: top-1 0.7500\n");
}

TEST(EvaluationReportTest, ComparesByTheFirstMetricOrByTheLoss) {
  std::ostringstream out;
  auto report = EvaluationReport::Open(out, "");
  const auto area = [](double loss, double area) {
    return TestResult{100, loss, {{"area under curve", "area under curve", area}}};
  };
  ASSERT_THAT((*report)->Add(At(10), area(0.5, 0.75), absl::Seconds(1)), IsOk());
  ASSERT_THAT((*report)->Add(At(20), area(0.75, 0.875), absl::Seconds(1)), IsOk());
  ASSERT_THAT((*report)->Finish(), IsOk());
  auto losses = EvaluationReport::Open(out, "");
  ASSERT_THAT((*losses)->Add(At(10), {100, 0.5, {}}, absl::Seconds(1)), IsOk());
  ASSERT_THAT((*losses)->Add(At(20), {100, 0.75, {}}, absl::Seconds(1)), IsOk());
  ASSERT_THAT((*losses)->Finish(), IsOk());
  EXPECT_EQ(out.str(),
            "step 10  loss 0.5000  area under curve 0.7500  1.00 s\n"
            "step 20  loss 0.7500  area under curve 0.8750  1.00 s\n"
            "evaluations 2, the best at step 20: area under curve 0.8750\n"
            "step 10  loss 0.5000  1.00 s\n"
            "step 20  loss 0.7500  1.00 s\n"
            "evaluations 2, the best at step 10: loss 0.5000\n");
  EXPECT_THAT(RecordOf(At(10), area(0.5, 0.75)),
              HasSubstr(R"("loss":0.5,"area_under_curve":0.75})"));
}

TEST(EvaluationReportTest, NamesTheFileIfNobodyKnowsTheStep) {
  std::ostringstream out;
  auto report = EvaluationReport::Open(out, "");
  ASSERT_THAT((*report)->Add({"model.pt", absl::nullopt, absl::nullopt}, ResultOf({1, 0, 0, 0}),
                             absl::ZeroDuration()),
              IsOk());
  EXPECT_THAT(out.str(), HasSubstr("model.pt  loss 0.0000"));
}

TEST(EvaluationReportTest, AppendsARecordALine) {
  const std::string path = absl::StrCat(::testing::TempDir(), "records.json");
  std::ostringstream out;
  for (uint64_t step : {10, 20}) {
    auto report = EvaluationReport::Open(out, path);
    ASSERT_THAT(report, IsOk());
    ASSERT_THAT((*report)->Add(At(step), ResultOf({100, 0.5, 0.75, 1}), absl::Seconds(1)), IsOk());
  }
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, absl::StrCat(RecordOf(At(10), ResultOf({100, 0.5, 0.75, 1})), "\n",
                               RecordOf(At(20), ResultOf({100, 0.5, 0.75, 1})), "\n"));
}

TEST(EvaluationReportTest, ARecordHasTheFieldsThatAreDocumented) {
  EXPECT_EQ(RecordOf(At(10), ResultOf({100, 0.5, 0.75, 1})),
            R"({"step":10,"incarnation":2,"source":"here:1","samples":100,"loss":0.5,"top1":0.75,)"
            R"("top5":1.0})");
}

TEST(EvaluationReportTest, WhatIsNotKnownOrNotFiniteIsNull) {
  const std::string record =
      RecordOf({"\xff.pt", absl::nullopt, absl::nullopt}, ResultOf({1, std::nan(""), 0, 0}));
  EXPECT_THAT(record, HasSubstr(R"("step":null,"incarnation":null)"));
  EXPECT_THAT(record, HasSubstr(R"("loss":null)"));
}

TEST(EvaluationReportTest, SaysWhatCannotBeWritten) {
  std::ostringstream out;
  EXPECT_THAT(EvaluationReport::Open(out, "/nowhere/records.json"),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("/nowhere/records.json")));
}

TEST(EvaluationReportTest, SaysIfThereWasNothing) {
  std::ostringstream out;
  EXPECT_THAT((*EvaluationReport::Open(out, ""))->Finish(),
              HasCode(absl::StatusCode::kFailedPrecondition, HasSubstr("nothing to evaluate")));
}

}  // namespace
}  // namespace sluice
