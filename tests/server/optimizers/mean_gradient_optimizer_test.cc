#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/optimizers/optimizer.h"
#include "tests/server/optimizers/formula.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

TEST(MeanGradientOptimizerTest, TheMeanReplacesWhatWasBeforeToTheBit) {
  const Values sum = {0.3f, 1e-10f, -7, 0};
  const Values before = {1e10f, 1, 3e-20f, std::numeric_limits<float>::max()};
  Values next(sum.size());
  const double unused_learning_rate = 1000;
  const auto optimizer = MakeOptimizer({MeanGradientOptions()}, sum.size());
  Apply(*optimizer, StepOf(1, 3, unused_learning_rate), sum, before, next);
  EXPECT_THAT(next, ElementsAre(0.3f / 3, 1e-10f / 3, -7.0f / 3, 0));
  EXPECT_TRUE(optimizer->slots().empty());
}

}  // namespace
}  // namespace sluice
