#include "common/protocol/optimizer_config.h"

#include <string>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

AdamOptions Adam(double learning_rate, double weight_decay = 0) {
  AdamOptions options;
  options.learning_rate = learning_rate;
  options.weight_decay = weight_decay;
  return options;
}

OptimizerConfig Grouped(const std::vector<OptimizerGroup>& groups) { return {Adam(0.1), groups}; }

// ---- Validity ----

TEST(OptimizerConfigTest, WithoutGroupsIsAsValidAsItsOptions) {
  EXPECT_THAT(Validate(OptimizerConfig{Adam(0.1)}), IsOk());
  EXPECT_THAT(Validate(OptimizerConfig{Adam(-1)}),
              IsError(Reason::kBadOptimizer, HasSubstr("Adam's learning_rate is -1")));
  EXPECT_THAT(Validate(OptimizerConfig{AveragingOptions()}), IsOk());
}

TEST(OptimizerConfigTest, TakesGroupsOfItsKind) {
  EXPECT_THAT(Validate(Grouped({{{"a", "b"}, Adam(0.2)}, {{"c"}, Adam(0.3)}})), IsOk());
}

TEST(OptimizerConfigTest, RefusesAGroupOfAnotherKindAndSaysWhich) {
  EXPECT_THAT(Validate(Grouped({{{"a"}, Adam(0.2)}, {{"b", "c"}, SgdOptions()}})),
              IsError(Reason::kBadOptimizer,
                      AllOf(HasSubstr("group of \"b\" is of sgd"), HasSubstr("expected adam"))));
  EXPECT_THAT(Validate(Grouped({{{"a"}, AdamWOptions()}})),
              IsError(Reason::kBadOptimizer, HasSubstr("is of adamw, expected adam")));
}

TEST(OptimizerConfigTest, RefusesAnOptionOfAGroupAndNamesBoth) {
  EXPECT_THAT(Validate(Grouped({{{"a"}, Adam(0.2, -1)}})),
              IsError(Reason::kBadOptimizer,
                      AllOf(HasSubstr("group of \"a\""), HasSubstr("Adam's weight_decay is -1"))));
}

TEST(OptimizerConfigTest, RefusesAParameterTwice) {
  const auto twice = IsError(Reason::kBadOptimizer, HasSubstr("parameter \"b\" is in the"));
  EXPECT_THAT(Validate(Grouped({{{"a", "b", "b"}, Adam(0.2)}})), twice);
  EXPECT_THAT(Validate(Grouped({{{"a", "b"}, Adam(0.2)}, {{"b"}, Adam(0.3)}})), twice);
}

TEST(OptimizerConfigTest, RefusesAGroupOfNothing) {
  EXPECT_THAT(Validate(Grouped({{{}, Adam(0.2)}})),
              IsError(Reason::kBadOptimizer, HasSubstr("has no parameters")));
}

TEST(OptimizerConfigTest, RefusesGroupsOfAveraging) {
  EXPECT_THAT(Validate(OptimizerConfig{AveragingOptions(), {{{"a"}, AveragingOptions()}}}),
              IsError(Reason::kBadOptimizer, HasSubstr("averaging has 1 groups of parameters")));
}

TEST(OptimizerConfigTest, ShowsLittleOfAHugeName) {
  const std::string huge(1 << 20, 'n');
  const absl::Status status = Validate(Grouped({{{huge, huge}, Adam(0.2)}}));
  EXPECT_THAT(status, IsError(Reason::kBadOptimizer, HasSubstr("nnn")));
  EXPECT_LT(status.message().size(), 400u);
}

// ---- The layout ----

Layout Three() { return LayoutOf({{"a", 2}, {"mean", 1, RangeKind::kStatistic}, {"b", 3}}); }

TEST(CheckFitsTest, TakesParametersOfTheModel) {
  EXPECT_THAT(CheckFits({Adam(0.1)}, Three()), IsOk());
  EXPECT_THAT(CheckFits(Grouped({{{"b"}, Adam(0.2)}, {{"a"}, Adam(0.3)}}), Three()), IsOk());
}

TEST(CheckFitsTest, RefusesAnUnknownNameAndAStatistic) {
  EXPECT_THAT(CheckFits(Grouped({{{"b", "fc.bais"}, Adam(0.2)}}), Three()),
              IsError(Reason::kBadOptimizer,
                      HasSubstr("group of \"b\" holds \"fc.bais\", which is not in the model")));
  EXPECT_THAT(CheckFits(Grouped({{{"mean"}, Adam(0.2)}}), Three()),
              IsError(Reason::kBadOptimizer,
                      HasSubstr("holds \"mean\", which is a statistic, not a parameter")));
}

// ---- Equality ----

TEST(CheckSameOptimizerTest, AcceptsEqualGroups) {
  const OptimizerConfig config = Grouped({{{"a", "b"}, Adam(0.2)}});
  EXPECT_THAT(CheckSameOptimizer(config, config), IsOk());
}

TEST(CheckSameOptimizerTest, NamesTheOptionOfAGroupThatDiffers) {
  EXPECT_THAT(CheckSameOptimizer(Grouped({{{"a"}, Adam(0.2)}}), Grouped({{{"a"}, Adam(0.5)}})),
              IsError(Reason::kOptimizerMismatch,
                      HasSubstr("has learning_rate 0.5 in the group of \"a\", the job's has 0.2")));
  EXPECT_THAT(
      CheckSameOptimizer(OptimizerConfig{Adam(0.1)}, OptimizerConfig{Adam(0.5)}),
      IsError(Reason::kOptimizerMismatch, HasSubstr("has learning_rate 0.5, the job's has 0.1")));
}

TEST(CheckSameOptimizerTest, TellsGroupsApart) {
  EXPECT_THAT(CheckSameOptimizer(OptimizerConfig{Adam(0.1)}, Grouped({{{"a"}, Adam(0.2)}})),
              IsError(Reason::kOptimizerMismatch,
                      HasSubstr("has 1 groups of parameters, the job's has 0")));
  EXPECT_THAT(
      CheckSameOptimizer(Grouped({{{"a"}, Adam(0.2)}}), Grouped({{{"b"}, Adam(0.2)}})),
      IsError(Reason::kOptimizerMismatch, HasSubstr("has \"b\" in a group where the job's has")));
  EXPECT_THAT(CheckSameOptimizer(Grouped({{{"a"}, Adam(0.2)}}), Grouped({{{"a", "b"}, Adam(0.2)}})),
              IsError(Reason::kOptimizerMismatch,
                      HasSubstr("has 2 parameters in its group of \"a\", the job's has 1")));
}

// ---- Changed options ----

SharedOptions Changed(uint32_t group, const OptimizerOptions& options) {
  return ShareOptions({{group, options}});
}

TEST(ChangedOptionsTest, HoldForTheirGroupAlone) {
  const OptimizerConfig job = Grouped({{{"a"}, Adam(0.2)}});
  const SharedOptions changed = Changed(1, Adam(0.3));
  EXPECT_THAT(CheckChanged(job, changed), IsOk());
  EXPECT_EQ(LearningRateOf(OptionsOf(job, changed, 0)), 0.1);
  EXPECT_EQ(LearningRateOf(OptionsOf(job, changed, 1)), 0.3);
  EXPECT_EQ(LearningRateOf(OptionsOf(job, nullptr, 1)), 0.2);
}

TEST(ChangedOptionsTest, MayNotNeedASlotThatWasNotKept) {
  AdamOptions amsgrad = Adam(0.1);
  amsgrad.amsgrad = true;
  EXPECT_THAT(CheckChanged({Adam(0.1)}, Changed(0, amsgrad)),
              IsError(Reason::kBadOptimizer, HasSubstr("now need max_exp_avg_sq, which")));
  EXPECT_THAT(CheckChanged({amsgrad}, Changed(0, Adam(0.1))), IsOk());
}

TEST(ChangedOptionsTest, AreOfTheJobsOptimizerAndOfAGroupThatItHas) {
  EXPECT_THAT(CheckChanged(Grouped({{{"a"}, Adam(0.2)}}), Changed(1, AdamWOptions())),
              IsError(Reason::kBadOptimizer,
                      HasSubstr("in the optimizer's group of \"a\", the optimizer is adamw, "
                                "expected adam")));
  EXPECT_THAT(
      CheckChanged({Adam(0.1)}, Changed(1, Adam(0.2))),
      IsError(Reason::kBadOptimizer, HasSubstr("group 1 have changed, expected at most 0")));
  EXPECT_THAT(CheckChanged({AveragingOptions()}, Changed(0, AveragingOptions())),
              IsError(Reason::kBadOptimizer, HasSubstr("expected none to")));
}

TEST(ChangedOptionsTest, TellTheFirstDifferenceOfTwoWorkers) {
  const OptimizerConfig job = Grouped({{{"a"}, Adam(0.2)}});
  EXPECT_EQ(DifferenceOf(job, nullptr, Changed(1, Adam(0.2)), "w"), "");
  EXPECT_EQ(DifferenceOf(job, Changed(1, Adam(0.2, 0.5)), nullptr, "w"),
            "weight_decay of the optimizer's group of \"a\" is 0.5, and 0 with w");
  AdamOptions amsgrad = Adam(0.1);
  amsgrad.amsgrad = true;
  EXPECT_EQ(DifferenceOf(job, Changed(0, amsgrad), nullptr, "w"), "amsgrad is on, and off with w");
}

}  // namespace
}  // namespace sluice
