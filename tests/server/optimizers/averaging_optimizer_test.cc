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

}  // namespace
}  // namespace sluice
