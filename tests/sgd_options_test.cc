#include "common/sgd_options.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

struct Option {
  std::string name;
  double SgdOptions::*value;
};

const Option kOptions[] = {
    {"learning_rate", &SgdOptions::learning_rate},
    {"momentum", &SgdOptions::momentum},
    {"dampening", &SgdOptions::dampening},
    {"weight_decay", &SgdOptions::weight_decay},
};

SgdOptions With(const Option& option, double value) {
  SgdOptions options;
  options.*option.value = value;
  return options;
}

SgdOptions Nesterov(double momentum, double dampening) {
  SgdOptions options;
  options.momentum = momentum;
  options.dampening = dampening;
  options.nesterov = true;
  return options;
}

TEST(SgdOptionsTest, DefaultIsValid) { EXPECT_THAT(SgdOptions().Validate(), IsOk()); }

TEST(SgdOptionsTest, AcceptsZeroOneAndLargeNumbers) {
  for (const Option& option : kOptions) {
    for (const double value : {0.0, 1.0, 1e300}) {
      EXPECT_THAT(With(option, value).Validate(), IsOk());
    }
  }
}

TEST(SgdOptionsTest, RefusesWhatIsNotFiniteAndNamesIt) {
  for (const Option& option : kOptions) {
    for (const double value : {kInfinity, -kInfinity, kNotANumber}) {
      EXPECT_THAT(With(option, value).Validate(),
                  IsError(Reason::kBadOptimizer,
                          AllOf(HasSubstr(absl::StrCat("SGD's ", option.name, " is ", value)),
                                HasSubstr("finite"))));
    }
  }
}

TEST(SgdOptionsTest, RefusesNegativeNumbersButForDampening) {
  for (const Option& option : kOptions) {
    if (option.name == "dampening") {
      EXPECT_THAT(With(option, -0.5).Validate(), IsOk());
    } else {
      EXPECT_THAT(With(option, -0.5).Validate(),
                  IsError(Reason::kBadOptimizer, HasSubstr(absl::StrCat(option.name, " is -0.5"))));
    }
  }
}

TEST(SgdOptionsTest, NesterovNeedsMomentumAndNoDampening) {
  EXPECT_THAT(Nesterov(0.9, 0).Validate(), IsOk());
  EXPECT_THAT(Nesterov(0, 0).Validate(),
              IsError(Reason::kBadOptimizer, HasSubstr("found 0 and 0")));
  EXPECT_THAT(Nesterov(0.9, 0.1).Validate(),
              IsError(Reason::kBadOptimizer, HasSubstr("found 0.9 and 0.1")));
  EXPECT_THAT(Nesterov(0.9, -0.1).Validate(),
              IsError(Reason::kBadOptimizer, HasSubstr("found 0.9 and -0.1")));
}

TEST(CheckSameOptimizerTest, AcceptsEqualOptions) {
  EXPECT_THAT(CheckSameOptimizer(Nesterov(0.9, 0), Nesterov(0.9, 0)), IsOk());
}

TEST(CheckSameOptimizerTest, ShowsBothValuesOfAnOptionThatDiffers) {
  for (const Option& option : kOptions) {
    EXPECT_THAT(CheckSameOptimizer(With(option, 0.5), With(option, 0.25)),
                IsError(Reason::kOptimizerMismatch,
                        HasSubstr(absl::StrCat("has ", option.name, " 0.25, the job's has 0.5"))));
  }
}

TEST(CheckSameOptimizerTest, NamesTheFirstOfSeveralDifferences) {
  SgdOptions worker;
  worker.weight_decay = 1;
  worker.momentum = 1;
  EXPECT_THAT(CheckSameOptimizer(SgdOptions(), worker),
              IsError(Reason::kOptimizerMismatch, HasSubstr("has momentum 1,")));
}

TEST(CheckSameOptimizerTest, ShowsDigitsUntilTheValuesDiffer) {
  SgdOptions job, worker;
  job.learning_rate = 0.1;
  worker.learning_rate = 0.1f;
  EXPECT_THAT(
      CheckSameOptimizer(job, worker),
      IsError(Reason::kOptimizerMismatch,
              HasSubstr("learning_rate 0.10000000149011612, the job's has 0.10000000000000001")));
}

TEST(CheckSameOptimizerTest, TellsNesterovApart) {
  SgdOptions job = Nesterov(0.9, 0);
  job.nesterov = false;
  EXPECT_THAT(CheckSameOptimizer(job, Nesterov(0.9, 0)),
              IsError(Reason::kOptimizerMismatch, HasSubstr("has nesterov on, the job's has off")));
}

}  // namespace
}  // namespace sluice
