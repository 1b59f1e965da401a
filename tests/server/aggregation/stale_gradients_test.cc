// What a step makes of stale gradients under the rules gap_aware, ordered_momentum and
// divided_momentum.

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/shard/step_world.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

SgdOptions Momentum(double momentum) {
  SgdOptions options;
  options.momentum = momentum;
  return options;
}

// ---- Gap ----

TEST(GapAwareTest, AGradientIsDividedByHowFarTheParametersHaveMovedSinceItWasComputed) {
  StepWorld world(LayoutOf({{"w", 1}}));
  world.gap_aware = true;
  world.Add({2});
  ASSERT_THAT(world.Make(), ElementsAre(-2));  // the mean step is 2
  world.Add({2});
  ASSERT_THAT(world.Make(), ElementsAre(-4));
  world.Add({9}, 1, 2);  // two mean steps: divided by 3
  EXPECT_THAT(world.Make(), ElementsAre(-7));
}

TEST(GapAwareTest, AFreshGradientKeepsItsBits) {
  StepWorld with(LayoutOf({{"w", 1}}), absl::nullopt, {Momentum(0.9)});
  StepWorld without(LayoutOf({{"w", 1}}), absl::nullopt, {Momentum(0.9)});
  with.gap_aware = true;
  for (const float x : {0.3f, -0.7f, 0.1f, 0.9f}) {
    with.Add({x});
    without.Add({x});
    EXPECT_EQ(with.Make(0.1), without.Make(0.1));
  }
}

TEST(GapAwareTest, StatisticsAreNotDivided) {
  StepWorld world(LayoutOf({{"w", 1}, {"mean", 1, RangeKind::kStatistic}}));
  world.gap_aware = true;
  world.Add({2, 5});
  world.Make();
  world.Add({2, 7}, 1, 1);
  EXPECT_THAT(world.Make(), ElementsAre(-3, 7));
}

TEST(GapAwareTest, EachGradientOfAStepHasItsOwnGap) {
  StepWorld world(LayoutOf({{"w", 1}}));
  world.gap_aware = true;
  world.Add({2});
  ASSERT_THAT(world.Make(), ElementsAre(-2));
  world.Add({4}, 1, 0);
  world.Keep({4}, 1, 1);
  EXPECT_THAT(world.Make(), ElementsAre(-5));  // the mean of 4 and 4 / 2
}

// The step of Adam does not depend on the gradient's size.
TEST(GapAwareTest, DividesTheLearningRateOfAnOptimizerThatNormalizes) {
  StepWorld divided(LayoutOf({{"w", 1}}), absl::nullopt, {AdamOptions()});
  StepWorld slower(LayoutOf({{"w", 1}}), absl::nullopt, {AdamOptions()});
  divided.gap_aware = true;
  for (StepWorld* const world : {&divided, &slower}) {
    world->Add({2});
    world->Make(0.5);
    world->Add({3}, 1, 1);
  }
  EXPECT_EQ(divided.Make(0.5), slower.Make(0.25));
  EXPECT_THAT(divided.director().terms().learning_rates, ElementsAre(0.25));
}

TEST(GapAwareTest, AStepThatIsNotMadeIsAStepWithoutALength) {
  StepWorld world(LayoutOf({{"w", 1}}));
  world.gap_aware = true;
  world.Add({2});
  world.Make();
  world.Add({3e38f});
  world.Make(1e6);
  ASSERT_TRUE(world.bad().has_value());
  world.Add({4}, 1, 1);  // computed on the same parameters
  EXPECT_THAT(world.Make(), ElementsAre(-6));
}

// ---- Ordered momentum ----

TEST(OrderedMomentumTest, WithOneWorkerItHasTheBitsOfPlainMomentum) {
  StepWorld ordered(LayoutOf({{"w", 2}}), absl::nullopt, {Momentum(0.9)});
  StepWorld plain(LayoutOf({{"w", 2}}), absl::nullopt, {Momentum(0.9)});
  ordered.ordered_momentum = true;
  for (const float x : {0.3f, -0.7f, 0.1f, 0.9f, 1e-4f}) {
    ordered.Add({x, 3 * x});
    plain.Add({x, 3 * x});
    EXPECT_EQ(ordered.Make(0.1), plain.Make(0.1));
  }
}

// The steps of two workers that are always fresh, and synchronous steps of the sums.
TEST(OrderedMomentumTest, EndsWhereSynchronousStepsEnd) {
  StepWorld ordered(LayoutOf({{"w", 1}}), absl::nullopt, {Momentum(0.5)});
  StepWorld synchronous(LayoutOf({{"w", 1}}), absl::nullopt, {Momentum(0.5)});
  ordered.ordered_momentum = true;
  ordered.workers = 2;
  for (const float x : {1.0f, 4.0f, -2.0f}) {
    ordered.Add({x});
    ordered.Make();
    ordered.Add({3 * x});
    ordered.Make();
    synchronous.Add({4 * x});
    EXPECT_EQ(ordered.parameters(), synchronous.Make());
  }
}

// A gradient of 8 that belongs to the first round of two workers comes in the third.
TEST(OrderedMomentumTest, ALateGradientMovesTheParametersAsIfItHadComeInTime) {
  StepWorld late(LayoutOf({{"w", 1}}), absl::nullopt, {Momentum(0.5)});
  StepWorld in_time(LayoutOf({{"w", 1}}), absl::nullopt, {Momentum(0.5)});
  for (StepWorld* const world : {&late, &in_time}) {
    world->ordered_momentum = true;
    world->workers = 2;
  }
  const auto step = [](StepWorld& world, float x, uint64_t staleness = 0) {
    world.Add({x}, 1, staleness);
    world.Make();
  };
  step(in_time, 8);
  for (int i = 0; i < 3; ++i) step(in_time, 0);
  step(in_time, 0);
  step(in_time, 0);
  for (int i = 0; i < 5; ++i) step(late, 0);
  step(late, 8, 5);
  EXPECT_EQ(late.parameters(), in_time.parameters());
  step(in_time, 0);  // and their momentum is the same
  step(late, 0);
  EXPECT_EQ(late.parameters(), in_time.parameters());
}

TEST(OrderedMomentumTest, DecaysOnceForAsManyGradientsAsThereAreWorkers) {
  StepWorld world(LayoutOf({{"w", 1}}), absl::nullopt, {Momentum(0.5)});
  world.ordered_momentum = true;
  world.workers = 3;
  std::vector<bool> decays;
  const auto step = [&] {
    world.Add({1});
    world.Make();
    decays.push_back(world.director().terms().ordered->decays);
  };
  for (int i = 0; i < 7; ++i) step();
  EXPECT_THAT(decays, ElementsAre(false, false, false, true, false, false, true));
  world.workers = 1;  // the others left
  for (int i = 0; i < 2; ++i) step();
  EXPECT_TRUE(decays[7]);
  EXPECT_TRUE(decays[8]);
}

// With 3 gradients a step and 4 workers, 4 steps hold 3 rounds of all workers.
TEST(OrderedMomentumTest, StepsOfSeveralGradientsKeepTheRestOfARound) {
  StepWorld world(LayoutOf({{"w", 1}}), absl::nullopt, {Momentum(0.5)});
  world.ordered_momentum = true;
  world.workers = 4;
  std::vector<bool> decays;
  for (int step = 0; step < 9; ++step) {
    for (int gradient = 0; gradient < 3; ++gradient) world.Add({1});
    world.Make();
    decays.push_back(world.director().terms().ordered->decays);
  }
  EXPECT_THAT(decays, ElementsAre(false, false, true, true, true, false, true, true, true));
}

// A restarted server has the recorded terms and the sum, and no history.
TEST(OrderedMomentumTest, AStepIsMadeAgainFromItsTermsToTheSameBits) {
  const Layout layout = LayoutOf({{"w", 3}});
  StepWorld world(layout, absl::nullopt, {Momentum(0.9)});
  world.gap_aware = world.ordered_momentum = true;
  world.workers = 2;
  Serial serial;
  const Stripes whole(layout.size(), 1);
  StepDirector director(layout, {Momentum(0.9)}, whole);
  StripeExecutor stripe(layout, {Momentum(0.9)}, whole, 0, serial);
  Values parameters(3);
  for (uint64_t i = 0; i < 9; ++i) {
    const auto x = static_cast<float>(i + 1);
    world.Add({x / 3, -x / 7, 1 / x}, 1, i % 4);
    const Values sum(world.executor().sum().begin(), world.executor().sum().end());
    world.Make(0.1);
    StepTerms recorded;
    recorded.learning_rates = world.director().terms().learning_rates;
    recorded.ordered = world.director().terms().ordered;
    director.Load(1, 1);
    stripe.Load(sum);
    Values next(3);
    uint64_t checksum = 0;
    MakeOn(stripe, director, recorded, {parameters, absl::MakeSpan(next), nullptr, &checksum});
    parameters = next;
    EXPECT_EQ(parameters, world.parameters());
    EXPECT_EQ(checksum, world.checksum());
  }
}

// ---- Divided momentum ----

template <typename Options>
OptimizerConfig WithBeta1(double beta1) {
  Options options;
  options.beta1 = beta1;
  return {options};
}

template <typename Options>
void ExpectTheBitsOfASmallerBeta1() {
  StepWorld divided(LayoutOf({{"w", 2}}), absl::nullopt, WithBeta1<Options>(0.75));
  StepWorld smaller(LayoutOf({{"w", 2}}), absl::nullopt, WithBeta1<Options>(0.1875));
  divided.momentum_divisor = 4;
  for (const float x : {0.3f, -0.7f, 0.1f, 0.9f}) {
    divided.Add({x, 3 * x});
    smaller.Add({x, 3 * x});
    EXPECT_EQ(divided.Make(0.1), smaller.Make(0.1));
  }
}

TEST(DividedMomentumTest, IsAdamWithASmallerBeta1) { ExpectTheBitsOfASmallerBeta1<AdamOptions>(); }

TEST(DividedMomentumTest, IsAdamWWithASmallerBeta1) {
  ExpectTheBitsOfASmallerBeta1<AdamWOptions>();
}

// With beta2 = 0, v is g², so the parameters move by m / (1 − beta1^t) / |g|.
TEST(DividedMomentumTest, FollowsTheNumberOfWorkers) {
  AdamOptions options;
  options.beta1 = 0.5;
  options.beta2 = 0;
  options.eps = 0;
  StepWorld world(LayoutOf({{"w", 1}}), absl::nullopt, {options});
  world.Add({2});
  ASSERT_THAT(world.Make(1), ElementsAre(-1));  // m = 1, of a bias of 1/2
  world.momentum_divisor = 2;
  world.Add({4});
  // m = 0.25 · 1 + 0.75 · 4 = 3.25; 1 − 0.25² = 0.9375; by |g| = 4.
  EXPECT_THAT(world.Make(1), ElementsAre(::testing::FloatEq(-1 - 3.25 / 0.9375 / 4)));
}

}  // namespace
}  // namespace sluice
