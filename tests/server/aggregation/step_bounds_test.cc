#include "server/aggregation/step_bounds.h"

#include <limits>
#include <memory>
#include <vector>

#include "common/protocol/optimizer_options.h"
#include "gtest/gtest.h"
#include "server/optimizers/optimizer.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// An optimizer of two parameters, with what is known of its steps.
class BoundsWorld {
 public:
  explicit BoundsWorld(const OptimizerOptions& options)
      : optimizer_(MakeOptimizer({options}, 2)),
        learning_rate_(LearningRateOf(options)),
        parameters_({3, -4}) {}

  // Begins a step whose sum is bounded so.
  StepBounds& Begin(double sum, float divisor = 1, double statistics = 0) {
    OptimizerStep step;
    step.number = ++number_;
    step.divisor = divisor;
    step.learning_rates = {learning_rate_};
    optimizer_->Begin(step);
    bounds.Begin(*optimizer_, sum, divisor, statistics);
    return bounds;
  }

  // Makes the step that has begun.
  void Make(const Values& sum) {
    Values next(2);
    optimizer_->Apply({0, 0, sum, parameters_, absl::MakeSpan(next)});
    if (bounds.measures()) bounds.Measure(0, next, optimizer_->slots());
    bounds.Commit();
    parameters_ = next;
  }

  StepBounds bounds;

 private:
  const std::unique_ptr<Optimizer> optimizer_;
  const double learning_rate_;
  Values parameters_;
  uint64_t number_ = 0;
};

SgdOptions Momentum() {
  SgdOptions options;
  options.momentum = 0.9;
  return options;
}

TEST(StepBoundsTest, NothingIsSureBeforeTheParametersWereMeasured) {
  BoundsWorld world{Momentum()};
  EXPECT_FALSE(world.Begin(1).is_sure());
  EXPECT_TRUE(world.bounds.sum_is_sure());
  EXPECT_TRUE(world.bounds.measures());
  world.Make({1, -1});
  EXPECT_TRUE(world.Begin(1).is_sure());
  EXPECT_FALSE(world.bounds.measures());
}

TEST(StepBoundsTest, AStepThatWasNotCommittedIsForgotten) {
  BoundsWorld world{Momentum()};
  world.Begin(1);
  world.Make({1, -1});
  EXPECT_FALSE(world.Begin(kInfinity).is_sure());
  EXPECT_TRUE(world.Begin(1).is_sure());
}

TEST(StepBoundsTest, NothingIsSureAfterTheSlotsWereReplaced) {
  BoundsWorld world{Momentum()};
  world.Begin(1);
  world.Make({1, -1});
  world.bounds.ForgetSlots();
  EXPECT_FALSE(world.Begin(1).is_sure());
  world.Make({1, -1});
  EXPECT_TRUE(world.Begin(1).is_sure());
}

TEST(StepBoundsTest, NeitherASumNorADivisorThatIsNotFiniteOrNotANumberIsSure) {
  BoundsWorld world{Momentum()};
  world.Begin(1);
  world.Make({1, -1});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(world.Begin(kInfinity).sum_is_sure());
  EXPECT_FALSE(world.Begin(2e38).sum_is_sure());
  EXPECT_FALSE(world.Begin(1, nan).is_sure());
  EXPECT_FALSE(world.Begin(1, 0).is_sure());
  EXPECT_FALSE(world.Begin(1, 1, kInfinity).sum_is_sure());
  EXPECT_FALSE(world.Begin(1, 1, nan).sum_is_sure());
  EXPECT_FALSE(world.Begin(1, 1, 2e38).sum_is_sure());
  EXPECT_TRUE(world.Begin(1).is_sure());
}

// Weight decay makes a bound grow by its own size in each step, by up to learning_rate / eps times.
TEST(StepBoundsTest, MeasuresOftenEnoughToStaySure) {
  for (OptimizerOptions options : AllOptimizers()) {
    if (IsOfProgram(options)) continue;
    if (std::holds_alternative<LambOptions>(options)) continue;
    // The mean of finite gradients is finite, whatever was before.
    const bool needs_none = std::holds_alternative<MeanGradientOptions>(options);
    for (const OptionRef& option : OptionsOf(options)) {
      if (option.info.name == option::kWeightDecay.name) option.set(0.01);
    }
    BoundsWorld world(options);
    int measured = 0;
    for (int step = 0; step < 1000; ++step) {
      ASSERT_EQ(world.Begin(1).is_sure(), needs_none || step > 0)
          << OptimizerName(options) << " " << step;
      measured += world.bounds.measures() ? 1 : 0;
      world.Make({1, -1});
    }
    EXPECT_LE(measured, 500) << OptimizerName(options);
  }
}

// Its pass for the norms tries every step, so a measured bound would be of no use.
TEST(StepBoundsTest, MeasuresNothingOfAnOptimizerThatIsAlwaysTried) {
  BoundsWorld world{LambOptions()};
  EXPECT_FALSE(world.Begin(1).measures());
  EXPECT_FALSE(world.bounds.is_sure());
  EXPECT_TRUE(world.bounds.sum_is_sure());
}

}  // namespace
}  // namespace sluice
