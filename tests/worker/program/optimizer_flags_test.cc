#include "worker/program/optimizer_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<OptimizerOptions> Parse(std::vector<std::string> arguments) {
  CLI::App app;
  OptimizerFlags flags;
  AddOptimizerFlags(app, flags);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  app.parse(arguments);
  return OptimizerFrom(flags);
}

void ExpectSame(const OptimizerOptions& expected, const std::vector<std::string>& arguments) {
  const auto options = Parse(arguments);
  ASSERT_THAT(options, IsOk());
  EXPECT_THAT(CheckSameOptimizer(expected, *options), IsOk());
}

TEST(OptimizerFlagsTest, DefaultsAreTheOptimizersOwn) {
  ExpectSame(SgdOptions(), {});
  for (const OptimizerOptions& options : AllOptimizers()) {
    if (WorkersStep(options) || IsOfProgram(options)) continue;
    ExpectSame(options, {absl::StrCat("--optimizer=", OptimizerName(options))});
  }
}

TEST(OptimizerFlagsTest, TakeEveryOption) {
  ExpectSame(SgdOptions{0.5, 0.9, 0, 0.25, true},
             {"--learning-rate=0.5", "--momentum=0.9", "--weight-decay=0.25", "--nesterov"});
  ExpectSame(SgdOptions{0.5, 0.9, 0.125, 0, false},
             {"--learning-rate=0.5", "--momentum=0.9", "--dampening=0.125"});
  const std::vector<std::string> moments = {"--learning-rate=0.5", "--beta1=0.6", "--beta2=0.7",
                                            "--eps=0.1", "--weight-decay=0.2"};
  const auto with = [&moments](std::vector<std::string> more) {
    more.insert(more.end(), moments.begin(), moments.end());
    return more;
  };
  ExpectSame(AdamOptions{0.5, 0.6, 0.7, 0.1, 0.2, true}, with({"--optimizer=adam", "--amsgrad"}));
  ExpectSame(AdamWOptions{0.5, 0.6, 0.7, 0.1, 0.2, true}, with({"--optimizer=adamw", "--amsgrad"}));
  ExpectSame(LambOptions{0.5, 0.6, 0.7, 0.1, 0.2}, with({"--optimizer=lamb"}));
  ExpectSame(AdagradOptions{0.5, 0.1, 0.2, 0.3, 0.4},
             {"--optimizer=adagrad", "--learning-rate=0.5", "--lr-decay=0.1", "--weight-decay=0.2",
              "--initial-accumulator-value=0.3", "--eps=0.4"});
  ExpectSame(RmsPropOptions{0.5, 0.1, 0.2, 0.3, 0.4, true},
             {"--optimizer=rmsprop", "--learning-rate=0.5", "--alpha=0.1", "--eps=0.2",
              "--weight-decay=0.3", "--momentum=0.4", "--centered"});
}

TEST(OptimizerFlagsTest, RefuseAnOptionOfAnotherOptimizer) {
  EXPECT_THAT(Parse({"--optimizer=adam", "--momentum=0.9"}),
              HasCode(absl::StatusCode::kInvalidArgument,
                      AllOf(HasSubstr("--momentum is not an option of adam"), HasSubstr("--beta1"),
                            HasSubstr("--amsgrad"))));
  EXPECT_THAT(Parse({"--optimizer=adagrad", "--nesterov"}),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("--nesterov is not an option of adagrad")));
  EXPECT_THAT(Parse({"--eps=1"}), HasCode(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("--eps is not an option of sgd")));
}

TEST(OptimizerFlagsTest, RefuseAValueOutOfItsDomain) {
  EXPECT_THAT(Parse({"--optimizer=adam", "--beta1=1"}),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("Adam's beta1 is 1, expected at least 0, less than 1")));
}

TEST(OptimizerFlagsTest, HelpNamesTheDefaultsAndTheOptimizersThatHaveThem) {
  CLI::App app;
  OptimizerFlags flags;
  AddOptimizerFlags(app, flags);
  EXPECT_EQ(app.get_option("--alpha")->get_description(),
            "decay of the mean squared gradient (default: 0.99 with rmsprop)");
  EXPECT_THAT(app.get_option("--learning-rate")->get_description(),
              AllOf(HasSubstr("0.001 with adam, adamw, lamb"), HasSubstr("; 0.01 with sgd, ")));
  EXPECT_EQ(app.get_option("--nesterov")->get_description(), "Nesterov momentum (sgd)");
}

TEST(OptimizerFlagsTest, KnowNoOtherOptimizer) {
  EXPECT_THROW((void)Parse({"--optimizer=no-optimizer"}), CLI::ParseError);
  EXPECT_THROW((void)Parse({"--optimizer=averaging"}), CLI::ParseError);
}

}  // namespace
}  // namespace sluice
