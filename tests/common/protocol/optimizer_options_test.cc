#include "common/protocol/optimizer_options.h"

#include <limits>
#include <map>
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

TEST(SgdOptionsTest, DefaultIsValid) { EXPECT_THAT(Validate(SgdOptions()), IsOk()); }

TEST(SgdOptionsTest, AcceptsZeroOneAndLargeNumbers) {
  for (const Option& option : kOptions) {
    const bool is_rate = option.name == std::string("learning_rate");
    for (const double value : {0.0, 1.0, is_rate ? kLargestLearningRate : 1e300}) {
      EXPECT_THAT(Validate(With(option, value)), IsOk());
    }
  }
}

TEST(SgdOptionsTest, RefusesAnAbsurdLearningRateAndNamesItsBound) {
  SgdOptions options;
  options.learning_rate = 1e300;
  EXPECT_THAT(Validate(options),
              IsError(Reason::kBadOptimizer, HasSubstr("learning_rate is 1e+300, expected a finite "
                                                       "number, at least 0, at most 1000000")));
}

TEST(SgdOptionsTest, RefusesWhatIsNotFiniteAndNamesIt) {
  for (const Option& option : kOptions) {
    for (const double value : {kInfinity, -kInfinity, kNotANumber}) {
      EXPECT_THAT(Validate(With(option, value)),
                  IsError(Reason::kBadOptimizer,
                          AllOf(HasSubstr(absl::StrCat("SGD's ", option.name, " is ", value)),
                                HasSubstr("finite"))));
    }
  }
}

TEST(SgdOptionsTest, RefusesNegativeNumbersButForDampening) {
  for (const Option& option : kOptions) {
    if (option.name == "dampening") {
      EXPECT_THAT(Validate(With(option, -0.5)), IsOk());
    } else {
      EXPECT_THAT(Validate(With(option, -0.5)),
                  IsError(Reason::kBadOptimizer, HasSubstr(absl::StrCat(option.name, " is -0.5"))));
    }
  }
}

TEST(SgdOptionsTest, NesterovNeedsMomentumAndNoDampening) {
  EXPECT_THAT(Validate(Nesterov(0.9, 0)), IsOk());
  EXPECT_THAT(Validate(Nesterov(0, 0)), IsError(Reason::kBadOptimizer, HasSubstr("found 0 and 0")));
  EXPECT_THAT(Validate(Nesterov(0.9, 0.1)),
              IsError(Reason::kBadOptimizer, HasSubstr("found 0.9 and 0.1")));
  EXPECT_THAT(Validate(Nesterov(0.9, -0.1)),
              IsError(Reason::kBadOptimizer, HasSubstr("found 0.9 and -0.1")));
}

TEST(CheckSameOptimizerOptionsTest, AcceptsEqualOptions) {
  EXPECT_THAT(CheckSameOptimizer(Nesterov(0.9, 0), Nesterov(0.9, 0)), IsOk());
}

TEST(CheckSameOptimizerOptionsTest, ShowsBothValuesOfAnOptionThatDiffers) {
  for (const Option& option : kOptions) {
    EXPECT_THAT(CheckSameOptimizer(With(option, 0.5), With(option, 0.25)),
                IsError(Reason::kOptimizerMismatch,
                        HasSubstr(absl::StrCat("has ", option.name, " 0.25, the job's has 0.5"))));
  }
}

TEST(CheckSameOptimizerOptionsTest, NamesTheFirstOfSeveralDifferences) {
  SgdOptions worker;
  worker.weight_decay = 1;
  worker.momentum = 1;
  EXPECT_THAT(CheckSameOptimizer(SgdOptions(), worker),
              IsError(Reason::kOptimizerMismatch, HasSubstr("has momentum 1,")));
}

TEST(CheckSameOptimizerOptionsTest, ShowsDigitsUntilTheValuesDiffer) {
  SgdOptions job, worker;
  job.learning_rate = 0.1;
  worker.learning_rate = 0.1f;
  EXPECT_THAT(
      CheckSameOptimizer(job, worker),
      IsError(Reason::kOptimizerMismatch,
              HasSubstr("learning_rate 0.10000000149011612, the job's has 0.10000000000000001")));
}

TEST(CheckSameOptimizerOptionsTest, TellsNesterovApart) {
  SgdOptions job = Nesterov(0.9, 0);
  job.nesterov = false;
  EXPECT_THAT(CheckSameOptimizer(job, Nesterov(0.9, 0)),
              IsError(Reason::kOptimizerMismatch, HasSubstr("has nesterov on, the job's has off")));
}

// ---- Averaging ----

AveragingOptions Averaging(double moving_rate, uint32_t local_steps) {
  AveragingOptions options;
  options.moving_rate = moving_rate;
  options.local_steps = local_steps;
  return options;
}

TEST(AveragingOptionsTest, DefaultIsValid) { EXPECT_THAT(Validate(AveragingOptions()), IsOk()); }

TEST(AveragingOptionsTest, TakesARateAboveZeroAndUpToOne) {
  EXPECT_THAT(Validate(Averaging(1e-9, 1)), IsOk());
  EXPECT_THAT(Validate(Averaging(1, 4294967295u)), IsOk());
  for (const double rate : {0.0, -0.5, 1.0000001, kInfinity, kNotANumber}) {
    EXPECT_THAT(Validate(Averaging(rate, 1)),
                IsError(Reason::kBadOptimizer, HasSubstr("moving_rate is ")));
  }
}

TEST(AveragingOptionsTest, RefusesNoLocalSteps) {
  EXPECT_THAT(Validate(Averaging(1, 0)),
              IsError(Reason::kBadOptimizer, HasSubstr("local_steps is 0, expected at least 1")));
}

TEST(AveragingOptionsTest, TakesOuterMomentumBelowOneAndNesterovOnlyWithIt) {
  AveragingOptions options;
  options.outer_momentum = 0.9;
  EXPECT_THAT(Validate(options), IsOk());
  options.outer_nesterov = true;
  EXPECT_THAT(Validate(options), IsOk());
  options.outer_momentum = 1;
  EXPECT_THAT(Validate(options), IsError(Reason::kBadOptimizer,
                                         HasSubstr("outer_momentum is 1, expected at least 0")));
  options.outer_momentum = 0;
  EXPECT_THAT(Validate(options),
              IsError(Reason::kBadOptimizer, HasSubstr("outer_nesterov needs outer_momentum")));
}

// ---- The others ----

// One option of one of them, and what it may not be.
struct Outside {
  OptimizerOptions options;
  std::string problem;
};

template <typename Options>
Outside With(double Options::*option, double value, const std::string& problem) {
  Options options;
  options.*option = value;
  return {options, problem};
}

// Of all with moments.
template <typename Options>
std::vector<Outside> MomentsOutside(const std::string& name) {
  return {With(&Options::learning_rate, -1, name + "'s learning_rate is -1"),
          With(&Options::beta1, 1, name + "'s beta1 is 1, expected at least 0, less than 1"),
          With(&Options::beta1, -0.5, name + "'s beta1 is -0.5"),
          With(&Options::beta2, 1.5, name + "'s beta2 is 1.5"),
          With(&Options::beta2, kNotANumber, name + "'s beta2 is nan"),
          With(&Options::eps, 0, name + "'s eps is 0, expected a finite number above 0"),
          With(&Options::eps, 1e-60, name + "'s eps is 1e-60"),
          With(&Options::weight_decay, kInfinity, name + "'s weight_decay is inf")};
}

TEST(OptimizerOptionsTest, RefuseWhatIsOutOfItsDomainAndNameIt) {
  std::vector<Outside> all = {
      With(&AdagradOptions::lr_decay, -1, "Adagrad's lr_decay is -1"),
      With(&AdagradOptions::initial_accumulator_value, -1,
           "Adagrad's initial_accumulator_value is -1"),
      With(&AdagradOptions::eps, 0, "Adagrad's eps is 0"),
      With(&AdagradOptions::weight_decay, kNotANumber, "Adagrad's weight_decay is nan"),
      With(&AdagradOptions::learning_rate, kInfinity, "Adagrad's learning_rate is inf"),
      With(&RmsPropOptions::alpha, 1.5, "RMSprop's alpha is 1.5, expected at least 0, at most 1"),
      With(&RmsPropOptions::eps, -1, "RMSprop's eps is -1"),
      With(&RmsPropOptions::momentum, -1, "RMSprop's momentum is -1"),
      With(&RmsPropOptions::weight_decay, -1, "RMSprop's weight_decay is -1"),
      With(&RmsPropOptions::learning_rate, kNotANumber, "RMSprop's learning_rate is nan")};
  for (const auto& more :
       {MomentsOutside<AdamOptions>("Adam"), MomentsOutside<AdamWOptions>("AdamW"),
        MomentsOutside<LambOptions>("LAMB")}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  for (const Outside& outside : all) {
    EXPECT_THAT(Validate(outside.options),
                IsError(Reason::kBadOptimizer, HasSubstr(outside.problem)));
  }
}

TEST(OptimizerOptionsTest, AreValidByDefaultAndEqualToThemselvesAlone) {
  const std::vector<OptimizerOptions> all = AllOptimizers();
  for (const OptimizerOptions& job : all) {
    EXPECT_THAT(Validate(job), IsOk());
    for (const OptimizerOptions& worker : all) {
      if (&job == &worker) {
        EXPECT_THAT(CheckSameOptimizer(job, worker), IsOk());
      } else {
        EXPECT_THAT(CheckSameOptimizer(job, worker),
                    IsError(Reason::kOptimizerMismatch, HasSubstr("optimizer is")));
      }
    }
  }
}

// ---- The table ----

TEST(OptimizerTableTest, EveryFieldIsAnOption) {
  for (OptimizerOptions options : AllOptimizers()) {
    size_t bytes = 0;
    for (const OptionRef& option : OptionsOf(options)) {
      bytes += std::visit([](const auto* field) { return sizeof(*field); }, option.field);
    }
    const size_t size = std::visit([](const auto& own) { return sizeof(own); }, options);
    EXPECT_LE(bytes, size) << OptimizerName(options);
    EXPECT_LT(size - bytes, sizeof(double)) << OptimizerName(options);  // padding
  }
}

TEST(OptimizerTableTest, NoTwoOptionsOfAnOptimizerHaveOneFieldOrOneName) {
  for (OptimizerOptions options : AllOptimizers()) {
    const std::vector<OptionRef> all = OptionsOf(options);
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        EXPECT_NE(all[i].field, all[j].field) << all[i].info.name;
        EXPECT_STRNE(all[i].info.name, all[j].info.name);
      }
    }
  }
}

// Flags and messages rely on it.
TEST(OptimizerTableTest, OptionsWithOneNameHaveOneDomainAndHelp) {
  std::map<std::string, OptionInfo> seen;
  for (OptimizerOptions options : AllOptimizers()) {
    for (const OptionRef& option : OptionsOf(options)) {
      const OptionInfo& first = seen.emplace(option.info.name, option.info).first->second;
      EXPECT_EQ(option.info.domain, first.domain) << first.name;
      EXPECT_STREQ(option.info.help, first.help) << first.name;
    }
  }
}

TEST(OptionRefTest, ReadsAndWritesItsField) {
  double number = 0.5;
  bool on = false;
  uint32_t count = 3;
  EXPECT_EQ((OptionRef{option::kEps, &number}.value()), 0.5);
  EXPECT_EQ((OptionRef{option::kLocalSteps, &count}.value()), 3);
  OptionRef{option::kEps, &number}.set(0.25);
  OptionRef{option::kNesterov, &on}.set(1);
  OptionRef{option::kLocalSteps, &count}.set(8);
  EXPECT_EQ(number, 0.25);
  EXPECT_TRUE(on);
  EXPECT_EQ(count, 8u);
}

TEST(OptionRefTest, MakesNoCountOfWhatACountCannotHold) {
  for (const double value : {-1.0, 4294967296.0, kInfinity, kNotANumber}) {
    uint32_t count = 3;
    OptionRef{option::kLocalSteps, &count}.set(value);
    EXPECT_EQ(count, 0u);
  }
}

TEST(OptimizerOptionsTest, HaveALearningRateUnlessTheyAverage) {
  EXPECT_EQ(LearningRateOf(SgdOptions()), 0.01);
  EXPECT_EQ(LearningRateOf(LambOptions()), 0.001);
  EXPECT_EQ(LearningRateOf(AveragingOptions()), 0);
}

TEST(CheckSameOptimizerOptionsTest, ComparesTheOthersToo) {
  AdamOptions amsgrad;
  amsgrad.amsgrad = true;
  EXPECT_THAT(CheckSameOptimizer(AdamOptions(), amsgrad),
              IsError(Reason::kOptimizerMismatch, HasSubstr("has amsgrad on, the job's has off")));
  RmsPropOptions slow;
  slow.alpha = 0.5;
  EXPECT_THAT(CheckSameOptimizer(slow, RmsPropOptions(), " in a group"),
              IsError(Reason::kOptimizerMismatch,
                      HasSubstr("has alpha 0.99 in a group, the job's has 0.5")));
}

TEST(OptimizerOptionsTest, AreValidIfThoseTheyHoldAre) {
  EXPECT_THAT(Validate(OptimizerOptions(Nesterov(0.9, 0))), IsOk());
  EXPECT_THAT(Validate(OptimizerOptions(Nesterov(0, 0))),
              IsError(Reason::kBadOptimizer, HasSubstr("Nesterov")));
  EXPECT_THAT(Validate(OptimizerOptions(Averaging(1, 5))), IsOk());
  EXPECT_THAT(Validate(OptimizerOptions(Averaging(2, 5))),
              IsError(Reason::kBadOptimizer, HasSubstr("moving_rate is 2")));
}

TEST(CheckSameOptimizerOptionsTest, ComparesAveragingToo) {
  EXPECT_THAT(CheckSameOptimizer(Averaging(0.5, 3), Averaging(0.5, 3)), IsOk());
  EXPECT_THAT(
      CheckSameOptimizer(Averaging(0.5, 3), Averaging(0.25, 3)),
      IsError(Reason::kOptimizerMismatch, HasSubstr("has moving_rate 0.25, the job's has 0.5")));
  EXPECT_THAT(CheckSameOptimizer(Averaging(0.5, 3), Averaging(0.5, 4)),
              IsError(Reason::kOptimizerMismatch, HasSubstr("has local_steps 4, the job's has 3")));
}

TEST(CheckSameOptimizerOptionsTest, TellsOptimizersApart) {
  EXPECT_THAT(CheckSameOptimizer(SgdOptions(), AveragingOptions()),
              IsError(Reason::kOptimizerMismatch,
                      HasSubstr("this worker's optimizer is averaging, the job's is sgd")));
  EXPECT_THAT(CheckSameOptimizer(AveragingOptions(), SgdOptions()),
              IsError(Reason::kOptimizerMismatch,
                      HasSubstr("this worker's optimizer is sgd, the job's is averaging")));
}

}  // namespace
}  // namespace sluice
