#include "server/policy/staleness_rules.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

constexpr ConsistencyMode kStaleModes[] = {ConsistencyMode::kBounded, ConsistencyMode::kSsp,
                                           ConsistencyMode::kAsync};

Consistency Auto(ConsistencyMode mode) {
  Consistency consistency;
  consistency.mode = mode;
  EXPECT_THAT(ParseStalenessRules("auto", &consistency), IsOk());
  return consistency;
}

SgdOptions Momentum(double momentum) {
  SgdOptions options;
  options.momentum = momentum;
  return options;
}

TEST(StalenessRulesTest, AutoUsesBothRulesWhereStaleGradientsOfSgdWithMomentumCount) {
  for (const ConsistencyMode mode : kStaleModes) {
    const StalenessRules rules = ChooseRules(Auto(mode), {Momentum(0.9)});
    EXPECT_TRUE(rules.gap_aware);
    EXPECT_TRUE(rules.ordered_momentum);
    EXPECT_THAT(rules.ToString(), HasSubstr("gap-aware and ordered-momentum ("));
    EXPECT_THAT(rules.reason, HasSubstr("SGD and momentum"));
  }
}

TEST(StalenessRulesTest, AutoUsesTheGapAloneWhereMomentumCannotBeOrdered) {
  SgdOptions nesterov = Momentum(0.9);
  nesterov.nesterov = true;
  const OptimizerConfig others[] = {{SgdOptions()}, {nesterov}};
  for (const OptimizerConfig& optimizer : others) {
    const StalenessRules rules = ChooseRules(Auto(ConsistencyMode::kAsync), optimizer);
    EXPECT_TRUE(rules.gap_aware);
    EXPECT_FALSE(rules.ordered_momentum);
  }
}

TEST(StalenessRulesTest, AutoDividesTheMomentumOfAdam) {
  for (const OptimizerOptions& options :
       {OptimizerOptions(AdamOptions()), OptimizerOptions(AdamWOptions())}) {
    for (const ConsistencyMode mode : kStaleModes) {
      const StalenessRules rules = ChooseRules(Auto(mode), {options});
      EXPECT_TRUE(rules.divided_momentum);
      EXPECT_FALSE(rules.gap_aware || rules.ordered_momentum);
      EXPECT_THAT(rules.ToString(), HasSubstr("divided-momentum ("));
      EXPECT_THAT(rules.reason, HasSubstr("most accurate with less momentum"));
    }
    EXPECT_FALSE(ChooseRules(Auto(ConsistencyMode::kSync), {options}).any());
  }
}

TEST(StalenessRulesTest, AutoUsesNoneWithOtherOptimizersThatNormalize) {
  for (const OptimizerOptions& options : AllOptimizers()) {
    if (IsOfProgram(options)) continue;
    if (std::holds_alternative<SgdOptions>(options)) continue;
    if (WorkersStep(options)) continue;
    if (std::holds_alternative<AdamOptions>(options)) continue;
    if (std::holds_alternative<AdamWOptions>(options)) continue;
    const StalenessRules rules = ChooseRules(Auto(ConsistencyMode::kAsync), {options});
    EXPECT_FALSE(rules.any()) << OptimizerName(options);
    EXPECT_THAT(rules.reason, HasSubstr("divides gradients by their size"));
    Consistency asked = Auto(ConsistencyMode::kAsync);
    ASSERT_THAT(ParseStalenessRules("gap-aware", &asked), IsOk());
    EXPECT_TRUE(ChooseRules(asked, {options}).gap_aware) << OptimizerName(options);
  }
}

TEST(StalenessRulesTest, AGroupWithoutMomentumKeepsMomentumUnordered) {
  OptimizerConfig optimizer = {Momentum(0.9)};
  optimizer.groups = {{{"bias"}, SgdOptions()}};
  EXPECT_FALSE(ChooseRules(Auto(ConsistencyMode::kAsync), optimizer).ordered_momentum);
  optimizer.groups = {{{"bias"}, Momentum(0.5)}};
  EXPECT_TRUE(ChooseRules(Auto(ConsistencyMode::kAsync), optimizer).ordered_momentum);
}

TEST(StalenessRulesTest, AutoUsesNoneWhereNoStaleGradientCounts) {
  for (const ConsistencyMode mode : {ConsistencyMode::kSync, ConsistencyMode::kBackup}) {
    const StalenessRules rules = ChooseRules(Auto(mode), {Momentum(0.9)});
    EXPECT_FALSE(rules.any());
    EXPECT_THAT(rules.reason, HasSubstr("no stale gradient counts"));
  }
}

TEST(StalenessRulesTest, AutoLeavesAveragedParametersAlone) {
  const StalenessRules rules = ChooseRules(Auto(ConsistencyMode::kAsync), {AveragingOptions()});
  EXPECT_FALSE(rules.any());
}

TEST(StalenessRulesTest, AutoDoesNotDividePerGapWhatIsDiscountedAlready) {
  Consistency consistency = Auto(ConsistencyMode::kAsync);
  consistency.discount_stale = true;
  const StalenessRules rules = ChooseRules(consistency, {Momentum(0.9)});
  EXPECT_TRUE(rules.discount_stale);
  EXPECT_FALSE(rules.gap_aware);
}

TEST(StalenessRulesTest, RulesThatWereTurnedOffStayOff) {
  Consistency consistency = Auto(ConsistencyMode::kAsync);
  ASSERT_THAT(ParseStalenessRules("none", &consistency), IsOk());
  EXPECT_FALSE(ChooseRules(consistency, {Momentum(0.9)}).any());
}

TEST(StalenessRulesTest, ARuleThatDoesNotFitTheOptimizerIsRefused) {
  Consistency consistency = Auto(ConsistencyMode::kAsync);
  ASSERT_THAT(ParseStalenessRules("ordered-momentum", &consistency), IsOk());
  EXPECT_THAT(CheckRules(consistency, {Momentum(0.9)}), IsOk());
  EXPECT_THAT(CheckRules(consistency, {AdamOptions()}),
              IsError(Reason::kBadOptimizer, HasSubstr("ordered-momentum does not fit its "
                                                       "optimizer, Adam; it needs SGD")));
  ASSERT_THAT(ParseStalenessRules("divided-momentum", &consistency), IsOk());
  EXPECT_THAT(CheckRules(consistency, {AdamWOptions()}), IsOk());
  EXPECT_THAT(CheckRules(consistency, {Momentum(0.9)}),
              IsError(Reason::kBadOptimizer, HasSubstr("divided-momentum does not fit its "
                                                       "optimizer, SGD; it needs adam")));
  ASSERT_THAT(ParseStalenessRules("gap-aware", &consistency), IsOk());
  EXPECT_THAT(CheckRules(consistency, {AdamOptions()}), IsOk());
  EXPECT_THAT(CheckRules(consistency, {AveragingOptions()}),
              IsError(Reason::kBadOptimizer, HasSubstr("gap-aware does not fit")));
}

TEST(StalenessRulesTest, WorkersThatStepThemselvesMayMissNoStep) {
  for (const ConsistencyMode mode :
       {ConsistencyMode::kSync, ConsistencyMode::kBackup, ConsistencyMode::kBounded,
        ConsistencyMode::kSsp, ConsistencyMode::kAsync}) {
    const absl::Status fits = CheckRules(Auto(mode), {MeanGradientOptions()});
    if (mode == ConsistencyMode::kSync) {
      EXPECT_THAT(fits, IsOk());
    } else {
      EXPECT_THAT(fits, IsError(Reason::kBadOptimizer, HasSubstr("lets them miss some")));
    }
  }
}

// An operator set it before the first worker joined, or a checkpoint brought it.
TEST(StalenessRulesTest, ARuleThatDoesNotFitIsNotUsedThoughItIsOn) {
  Consistency consistency = Auto(ConsistencyMode::kAsync);
  consistency.gap_aware = consistency.ordered_momentum = RuleChoice::kOn;
  consistency.divided_momentum = RuleChoice::kOn;
  consistency.discount_stale = true;
  SgdOptions nesterov = Momentum(0.9);
  nesterov.nesterov = true;
  for (const OptimizerConfig& other : {OptimizerConfig{nesterov}, OptimizerConfig{Momentum(1)}}) {
    EXPECT_FALSE(ChooseRules(consistency, other).ordered_momentum);
    EXPECT_FALSE(ChooseRules(consistency, other).divided_momentum);
  }
  EXPECT_FALSE(ChooseRules(consistency, {AveragingOptions()}).any());
  EXPECT_THAT(CheckRules(consistency, {AveragingOptions()}), IsError(Reason::kBadOptimizer, _));
}

TEST(StalenessRulesTest, AnUnknownRuleIsNamed) {
  Consistency consistency;
  EXPECT_THAT(ParseStalenessRules("gap-aware,dana", &consistency),
              IsError(Reason::kBadArgument, HasSubstr("\"gap-aware,dana\"; expected auto, none")));
}

}  // namespace
}  // namespace sluice
