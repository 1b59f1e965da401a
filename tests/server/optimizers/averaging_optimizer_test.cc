#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/optimizers/optimizer.h"
#include "tests/server/optimizers/formula.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

// What a step makes of `current`, if so many workers pushed `sum` in all.
Values Average(double moving_rate, const Values& sum, float workers, const Values& current) {
  AveragingOptions options;
  options.moving_rate = moving_rate;
  Values next(sum.size());
  const double unused_learning_rate = 1000;
  Apply(*MakeOptimizer({options}, sum.size()), StepOf(1, workers, unused_learning_rate), sum,
        current, next);
  return next;
}

// Not current + 1 · (mean − current), which rounds twice.
TEST(AveragingOptimizerTest, WithARateOfOneTheMeanReplacesTheParametersToTheBit) {
  const Values sum = {0.3f, 1e-10f, -7, 1e30f};
  const Values far_away = {1e10f, 1, 3e-20f, -1};
  EXPECT_THAT(Average(1, sum, 3, far_away),
              ElementsAre(0.3f / 3, 1e-10f / 3, -7.0f / 3, 1e30f / 3));
}

TEST(AveragingOptimizerTest, BelowOneTheParametersMoveTowardsTheMean) {
  EXPECT_THAT(Average(0.5, {8, -8, 3}, 2, {0, 2, 1.5}), ElementsAre(2, -1, 1.5));
  EXPECT_THAT(Average(0.25, {8, -8, 3}, 2, {0, 2, 1.5}), ElementsAre(1, 0.5, 1.5));
}

// Equation 6 with β = 0.5: what is left of the distance to a fixed mean halves at every step.
TEST(AveragingOptimizerTest, HalvesTheDistanceToTheMeanAtEveryStep) {
  Values center = {0};
  for (float left = 512; left >= 1; left /= 2) {
    center = Average(0.5, {2048}, 2, center);
    EXPECT_THAT(center, ElementsAre(1024 - left));
  }
}

// ---- Momentum of the server's steps ----

AveragingOptions Outer(double moving_rate, double momentum, bool nesterov) {
  AveragingOptions options;
  options.moving_rate = moving_rate;
  options.outer_momentum = momentum;
  options.outer_nesterov = nesterov;
  return options;
}

// Algorithm 1 of DiLoCo with SGD as its outer optimizer, and SlowMo's with a constant inner
// learning rate, for one element. The mean of the workers is its gradient's argument.
class OuterByFormula {
 public:
  explicit OuterByFormula(const AveragingOptions& options) : o_(options) {}

  double Next(double parameter, double mean) {
    const double gradient = parameter - mean;
    buffer_ = o_.outer_momentum * buffer_ + gradient;
    const double step = o_.outer_nesterov ? gradient + o_.outer_momentum * buffer_ : buffer_;
    return parameter - o_.moving_rate * step;
  }

 private:
  AveragingOptions o_;
  double buffer_ = 0;
};

std::string NameOf(const ::testing::TestParamInfo<AveragingOptions>& info) {
  const AveragingOptions& o = info.param;
  return absl::StrReplaceAll(absl::StrCat("Rate", o.moving_rate, "Momentum", o.outer_momentum,
                                          o.outer_nesterov ? "Nesterov" : ""),
                             {{".", "p"}});
}

class OuterMomentumTest : public ::testing::TestWithParam<AveragingOptions> {};

TEST_P(OuterMomentumTest, MakesOfAHundredStepsWhatTheFormulasMake) {
  ExpectFollows(GetParam(), OuterByFormula(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, OuterMomentumTest,
                         ::testing::Values(Outer(1, 0.25, false), Outer(1, 0.5, true),
                                           Outer(0.75, 0.5, false), Outer(0.7, 0.9, true)),
                         NameOf);

// Two steps of one parameter that starts at 8; the means of two workers are 4, then 2.
Values TwoSteps(const AveragingOptions& options) {
  const auto optimizer = MakeOptimizer({options}, 1);
  Values first(1), second(1);
  Apply(*optimizer, StepOf(1, 2, 0), {8}, {8}, first);
  Apply(*optimizer, StepOf(2, 2, 0), {4}, first, second);
  return {first[0], second[0]};
}

TEST(AveragingOptimizerTest, WithMomentumGoesOnInTheDirectionOfTheStepBefore) {
  EXPECT_THAT(TwoSteps(Outer(1, 0.5, false)), ElementsAre(4, 4 - (0.5 * 4 + 2)));
  EXPECT_THAT(TwoSteps(Outer(0.5, 0.5, false)), ElementsAre(6, 6 - 0.5 * (0.5 * 4 + 4)));
}

TEST(AveragingOptimizerTest, WithNesterovMomentumLooksAhead) {
  // The first step moves by 4 + 0.5 · 4, to 2. The mean is there already: then momentum alone
  // moves.
  EXPECT_THAT(TwoSteps(Outer(1, 0.5, true)), ElementsAre(2, 2 - 0.5 * (0.5 * 4)));
}

}  // namespace
}  // namespace sluice
