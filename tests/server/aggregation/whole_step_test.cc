// Steps of a vector that is one stripe.

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/shard/step_world.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr uint32_t kWord = 4 << 18;  // progress is reported after so many elements

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;

// Two parameters around a statistic.
Layout Mixed() { return LayoutOf({{"w", 1}, {"mean", 1, RangeKind::kStatistic}, {"b", 1}}); }

// ---- Reduction ----

TEST(WholeStepTest, ParametersMoveByTheMeanAndStatisticsBecomeIt) {
  StepWorld world(Mixed());
  world.Add({2, 10, 6});
  world.Add({4, 30, 0});
  EXPECT_THAT(world.Make(), ElementsAre(-3, 20, -3));
}

TEST(WholeStepTest, ForgetsWhatAStepWasMadeOf) {
  StepWorld world(Mixed());
  world.Add({2, 10, 6});
  world.Add({2, 10, 6});
  ASSERT_THAT(world.Make(), ElementsAre(-2, 10, -6));
  world.Add({1, 5, 1});
  EXPECT_THAT(world.Make(), ElementsAre(-3, 5, -7));
}

TEST(WholeStepTest, WeighsBySamples) {
  StepWorld world(Mixed());
  world.consistency.reduction = Reduction::kWeightedMean;
  world.Add({2, 10, 8}, 1);
  world.Add({6, 30, 0}, 3);
  EXPECT_THAT(world.Make(), ElementsAre(-5, 25, -2));
  world.Add({7, 9, 7}, 100);
  EXPECT_THAT(world.Make(), ElementsAre(-12, 9, -9));
}

TEST(WholeStepTest, IgnoresSamplesUnlessAskedToWeighThem) {
  StepWorld world(Mixed());
  world.Add({2, 10, 8}, 1);
  world.Add({6, 30, 0}, 3);
  EXPECT_THAT(world.Make(), ElementsAre(-4, 20, -4));
}

TEST(WholeStepTest, SumsParametersButNotStatistics) {
  StepWorld world(Mixed());
  world.consistency.reduction = Reduction::kSum;
  world.Add({2, 10, 6});
  world.Add({4, 30, 0});
  EXPECT_THAT(world.Make(), ElementsAre(-6, 20, -6));
}

// ---- Running means ----

TEST(WholeStepTest, ARunningMeanKeepsAPartOfItsValueAndGainsWhatIsPushed) {
  StepWorld world(Mixed());
  world.set_parameters({0, 8, 0});
  world.Add({2, 10, 6}, 1, 0, {{1, 2, 0.75}});
  EXPECT_THAT(world.Make(), ElementsAre(-2, 16, -6));
  world.Add({0, 10, 0});
  EXPECT_THAT(world.Make(), ElementsAre(-2, 10, -6));  // a value again
}

// Two workers pulled 8, and each has seen a batch: 16, and 0. The pushes come one after the other.
TEST(WholeStepTest, ARunningMeanFollowsTheBatchesOfStaleWorkers) {
  StepWorld world(Mixed());
  world.set_parameters({0, 8, 0});
  const float decay = 0.5;
  float one = 8;
  for (const float batch : {16.0f, 0.0f}) {
    const float after = decay * 8 + (1 - decay) * batch;
    world.Add({0, after - decay * 8, 0}, 1, 3, {{1, 2, decay}});
    world.Make();
    one = decay * one + (1 - decay) * batch;  // of a process that sees both
  }
  EXPECT_EQ(world.parameters()[1], one);
}

TEST(WholeStepTest, ARunningMeanOfSeveralGradientsHasTheMeansOfBoth) {
  StepWorld world(Mixed());
  world.set_parameters({0, 8, 0});
  world.Add({0, 10, 0}, 1, 0, {{1, 2, 1}});
  world.Add({0, 30, 0});
  EXPECT_EQ(world.Make()[1], 8 * 0.5 + 20);
  world.consistency.reduction = Reduction::kWeightedMean;
  world.set_parameters({0, 8, 0});
  world.Add({0, 10, 0}, 3, 0, {{1, 2, 1}});
  world.Add({0, 30, 0}, 1);
  EXPECT_EQ(world.Make()[1], 8 * 0.75 + (3 * 10 + 30) / 4.0);
  world.consistency.reduction = Reduction::kSum;
  world.set_parameters({0, 8, 0});
  world.Add({0, 10, 0}, 1, 0, {{1, 2, 0.5}});
  world.Keep({0, 30, 0}, 1, 0, {{1, 2, 0.25}});
  EXPECT_EQ(world.Make()[1], 8 * 0.375 + 20);
}

TEST(WholeStepTest, ARunningMeanThatWouldNotBeFiniteAbandonsTheStep) {
  for (const float now : {3e38f, 1.0f}) {
    StepWorld world(Mixed());
    world.set_parameters({0, now, 0});
    world.Add({1, 3e38f, 1}, 1, 0, {{1, 2, 0.5}});
    world.Make();
    const absl::optional<uint64_t> first =
        now > 1 ? absl::make_optional<uint64_t>(1) : absl::nullopt;
    EXPECT_EQ(world.bad(), first) << now;
  }
}

TEST(WholeStepTest, DiscountsStaleGradientsButNotStatistics) {
  StepWorld world(Mixed());
  world.consistency.discount_stale = true;
  world.Add({4, 10, 4}, 1, 3);
  world.Add({4, 30, 0}, 1, 0);
  EXPECT_THAT(world.Make(), ElementsAre(-(1 + 4) / 2.0, 20, -1 / 2.0));
}

TEST(WholeStepTest, IgnoresStalenessUnlessAskedToDiscountIt) {
  StepWorld world(Mixed());
  world.Add({4, 10, 4}, 1, 3);
  EXPECT_THAT(world.Make(), ElementsAre(-4, 10, -4));
}

TEST(WholeStepTest, DiscountsWhatItWeighs) {
  StepWorld world(Mixed());
  world.consistency.reduction = Reduction::kWeightedMean;
  world.consistency.discount_stale = true;
  world.Add({8, 10, 8}, 3, 1);
  world.Add({4, 30, 0}, 1, 0);
  EXPECT_THAT(world.Make(), ElementsAre(-(3 * 8 / 2 + 4) / 4.0, (3 * 10 + 30) / 4.0, -3));
}

TEST(WholeStepTest, OfNothingMakesAnEqualStep) {
  StepWorld world(Mixed());
  world.Add({2, 10, 6});
  const Values before = world.Make();
  EXPECT_EQ(world.Make(), before);
}

// ---- The optimizer ----

TEST(WholeStepTest, TakesEachStepsOwnLearningRate) {
  StepWorld world(ParametersOnly(1));
  world.Add({2});
  EXPECT_THAT(world.Make(0.5), ElementsAre(-1));
  world.Add({2});
  EXPECT_THAT(world.Make(2), ElementsAre(-5));
}

// Momentum must begin with the first gradient, not with the first step.
TEST(WholeStepTest, AStepOfNothingIsNotTheOptimizersFirst) {
  SgdOptions options;
  options.momentum = 0.5;
  options.dampening = 0.75;
  StepWorld world(ParametersOnly(1), absl::nullopt, {options});
  EXPECT_THAT(world.Make(), ElementsAre(0));
  world.Add({8});
  EXPECT_THAT(world.Make(), ElementsAre(-8));
  world.Add({8});
  EXPECT_THAT(world.Make(), ElementsAre(-8 - (0.5 * 8 + 0.25 * 8)));
}

// An executor continues another one with its parameters, slots and number of steps.
TEST(WholeStepTest, AnOptimizersLifeGoesOnWithItsSlotsAndSteps) {
  SgdOptions options;
  options.momentum = 0.5;
  options.dampening = 0.75;
  StepWorld world(ParametersOnly(1), absl::nullopt, {options});
  EXPECT_EQ(world.executor().optimizer_steps(), 0u);
  world.executor().slots()[0].values[0] = 16;
  world.set_optimizer_steps(7);
  world.Add({8});
  EXPECT_THAT(world.Make(), ElementsAre(-(0.5 * 16 + 0.25 * 8)));
  EXPECT_EQ(world.executor().optimizer_steps(), 8u);
}

TEST(WholeStepTest, AveragesParametersAndStatisticsAlike) {
  AveragingOptions options;
  options.moving_rate = 0.5;
  StepWorld world(Mixed(), absl::nullopt, {options});
  world.Add({8, 8, 4});
  world.Add({0, 0, 4});
  EXPECT_THAT(world.Make(), ElementsAre(2, 4, 2));
}

// ---- Clipping ----

// torch::nn::utils::clip_grad_norm_: times max_norm / (norm + 1e-6), if that is below 1.
float Clipped(double value, double norm, double clip_norm) {
  return static_cast<float>(-value * clip_norm / (norm + 1e-6));
}

TEST(ClipTest, ScalesTheReducedGradientDownToTheNorm) {
  StepWorld world(ParametersOnly(2), 1);
  world.Add({6, 8});
  world.Add({0, 0});
  EXPECT_THAT(world.Make(), ElementsAre(FloatEq(Clipped(3, 5, 1)), FloatEq(Clipped(4, 5, 1))));
}

TEST(ClipTest, LeavesAGradientWithinTheNormAsItIsToTheBit) {
  StepWorld clipping(ParametersOnly(2), 10);
  StepWorld plain(ParametersOnly(2));
  for (StepWorld* world : {&clipping, &plain}) {
    world->Add({0.1f, 0.7f});
    world->Add({0.3f, 0.2f});
    world->Add({0.5f, 0.9f});
  }
  EXPECT_EQ(clipping.Make(0.3), plain.Make(0.3));
}

TEST(ClipTest, CountsParametersAloneAndScalesNoStatistic) {
  StepWorld world(Mixed(), 1);
  world.Add({3, 1000, 4});
  EXPECT_THAT(world.Make(),
              ElementsAre(FloatEq(Clipped(3, 5, 1)), 1000, FloatEq(Clipped(4, 5, 1))));
}

TEST(ClipTest, BoundsTheSumAndTheWeightedMeanToo) {
  for (const Reduction reduction : {Reduction::kSum, Reduction::kWeightedMean}) {
    StepWorld world(ParametersOnly(2), 1);
    world.consistency.reduction = reduction;
    world.Add({3, 4}, 7);
    world.Add({3, 4}, 2);
    const double norm = reduction == Reduction::kSum ? 10 : 5;
    EXPECT_THAT(world.Make(), ElementsAre(FloatEq(Clipped(norm * 0.6, norm, 1)),
                                          FloatEq(Clipped(norm * 0.8, norm, 1))));
  }
}

TEST(ClipTest, TakesAGradientOfZero) {
  StepWorld world(ParametersOnly(2), 1);
  world.Add({0, 0});
  EXPECT_THAT(world.Make(), ElementsAre(0, 0));
}

// ---- Steps that are not finite ----

constexpr float kHuge = 3e38f;  // finite; twice as much is not

TEST(NotFiniteTest, TellsTheFirstElementAndKeepsTheOptimizersState) {
  SgdOptions options;
  options.momentum = 0.5;
  StepWorld world(ParametersOnly(3), absl::nullopt, {options});
  world.Add({2, 2, 2});
  ASSERT_THAT(world.Make(), ElementsAre(-2, -2, -2));
  world.Add({1, kHuge, kHuge});
  world.Add({1, kHuge, kHuge});
  world.Make();
  EXPECT_EQ(world.bad(), 1u);
  EXPECT_EQ(world.executor().optimizer_steps(), 1u);
  EXPECT_THAT(world.executor().slots()[0].values, ElementsAre(2, 2, 2));
  world.Add({2, 2, 2});
  EXPECT_THAT(world.Make(), ElementsAre(-5, -5, -5));
  EXPECT_EQ(world.bad(), absl::nullopt);
}

TEST(NotFiniteTest, TellsTheSameElementWithAnyNumberOfThreads) {
  const uint32_t size = (4 << 18) + 5;
  Values gradient(size, 1);
  for (const uint32_t at : {size - 1, 3u << 18, (1u << 18) + 7}) gradient[at] = -kHuge;
  for (const uint32_t threads : {1, 4}) {
    StepWorld world(ParametersOnly(size), absl::nullopt, {SgdOptions()},
                    std::make_unique<ThreadPool>(threads));
    world.set_parameters(Values(size, kHuge));
    world.Keep(gradient);
    world.Make();
    EXPECT_EQ(world.bad(), (1u << 18) + 7) << threads;
  }
}

TEST(NotFiniteTest, ReportsNoProgressOfAStepThatIsNotMade) {
  StepWorld world(ParametersOnly(3 * kWord));
  Values gradient(3 * kWord, 1);
  gradient[kWord] = -kHuge;
  world.set_parameters(Values(3 * kWord, kHuge));
  world.Add(gradient);
  std::vector<uint64_t> ends;
  world.Make(1, [&ends](uint64_t end) { ends.push_back(end); });
  EXPECT_EQ(world.bad(), kWord);
  EXPECT_THAT(ends, ElementsAre());
}

// A finite sum of finite gradients whose norm is no number: the clip's share would be one.
TEST(NotFiniteTest, ClippingMakesNoNanOfAnInfiniteSum) {
  StepWorld world(ParametersOnly(2), 1);
  world.Add({kHuge, 1});
  world.Keep({kHuge, 1});
  EXPECT_THAT(world.Make(), ElementsAre(0, 0));
  EXPECT_EQ(world.bad(), 0u);
}

// ---- The last contribution ----

TEST(WholeStepTest, CountsAContributionThatIsAddedOnTheWay) {
  StepWorld world(Mixed());
  world.Add({2, 10, 6});
  world.Keep({4, 30, 0});
  EXPECT_THAT(world.Make(), ElementsAre(-3, 20, -3));
  world.Keep({1, 5, 1});
  EXPECT_THAT(world.Make(), ElementsAre(-4, 5, -4));
}

TEST(WholeStepTest, WeighsAContributionThatIsAddedOnTheWay) {
  StepWorld world(Mixed());
  world.consistency.reduction = Reduction::kWeightedMean;
  world.consistency.discount_stale = true;
  world.Add({4, 30, 0}, 1, 0);
  world.Keep({8, 10, 8}, 3, 1);
  EXPECT_THAT(world.Make(), ElementsAre(-(3 * 8 / 2 + 4) / 4.0, (3 * 10 + 30) / 4.0, -3));
}

TEST(WholeStepTest, ClipsAContributionThatIsKeptForLast) {
  StepWorld kept(ParametersOnly(2), 1);
  kept.Add({6, 8});
  kept.Keep({0, 0});
  StepWorld added(ParametersOnly(2), 1);
  added.Add({6, 8});
  added.Add({0, 0});
  EXPECT_EQ(kept.Make(), added.Make());
}

// ---- Parts ----

// Progress is reported three times, the last time for a short part. Ranges of both kinds cross the
// edges.

Layout Long() {
  return LayoutOf({{"a", kWord - 1}, {"mean", kWord + 1, RangeKind::kStatistic}, {"b", 5}});
}

TEST(WholeStepTest, TellsHowFarItHasWritten) {
  StepWorld world(Long());
  world.Add(Values(2 * kWord + 5, 2));
  std::vector<uint64_t> ends;
  world.Make(1, [&ends](uint64_t end) { ends.push_back(end); });
  EXPECT_THAT(ends, ElementsAre(kWord, 2 * kWord, 2 * kWord + 5));
}

TEST(WholeStepTest, TheEdgesOfPartsShowInNoElement) {
  StepWorld world(Long());
  for (const bool on_the_way : {false, true}) {
    const Values before = world.parameters();
    if (on_the_way) {
      world.Keep(Values(2 * kWord + 5, 2));
    } else {
      world.Add(Values(2 * kWord + 5, 2));
    }
    const absl::Span<const float> made = world.Make();
    EXPECT_THAT(made.subspan(0, kWord - 1), Each(before[0] - 2));
    EXPECT_THAT(made.subspan(kWord - 1, kWord + 1), Each(2));
    EXPECT_THAT(made.subspan(2 * kWord), Each(before[0] - 2));
  }
}

TEST(WholeStepTest, HasWrittenWhatItTellsOf) {
  StepWorld world(ParametersOnly(2 * kWord));
  world.Add(Values(2 * kWord, 1));
  std::vector<float> last_written;
  std::vector<float> first_unwritten;
  world.Make(1, [&](uint64_t end) {
    last_written.push_back(world.next()[end - 1]);
    if (end < world.next().size()) first_unwritten.push_back(world.next()[end]);
  });
  EXPECT_THAT(last_written, ElementsAre(-1, -1));
  EXPECT_THAT(first_unwritten, ElementsAre(StepWorld::kUnwritten));
}

// ---- Checksums ----

TEST(WholeStepTest, EqualStepsHaveEqualChecksumsAndOthersHaveNot) {
  StepWorld a(Mixed());
  StepWorld b(Mixed());
  StepWorld other(Mixed());
  a.Add({2, 10, 6});
  b.Keep({2, 10, 6});
  other.Add({2, 10, 6.0000005f});
  a.Make();
  b.Make();
  other.Make();
  EXPECT_EQ(a.checksum(), b.checksum());
  EXPECT_NE(a.checksum(), other.checksum());
  a.Make();
  EXPECT_EQ(a.checksum(), 0u);  // of nothing
}

// Other bits in a slot may be seen in the parameters only many steps later.
TEST(WholeStepTest, ChecksumsCoverTheOptimizersSlots) {
  SgdOptions momentum;
  momentum.momentum = 0.5;
  for (const OptimizerOptions& options :
       {OptimizerOptions(momentum), OptimizerOptions(LambOptions())}) {
    uint64_t checksums[2] = {};
    Values parameters[2];
    for (const int changed : {0, 1}) {
      StepWorld world(ParametersOnly(3), absl::nullopt, {options});
      world.set_optimizer_steps(7);
      world.executor().slots().back().values[1] = changed == 0 ? 1.0f : 1.5f;
      world.Add({1, 1, 1});
      parameters[changed] = world.Make(0);
      checksums[changed] = world.checksum();
    }
    EXPECT_EQ(parameters[0], parameters[1]);
    EXPECT_NE(checksums[0], checksums[1]);
  }
}

// A change of the last element of each part changes it.
TEST(WholeStepTest, ChecksumsCoverEveryPart) {
  std::set<uint64_t> checksums;
  for (const OptimizerOptions& options :
       {OptimizerOptions(SgdOptions()), OptimizerOptions(LambOptions())}) {
    for (const uint64_t changed : {0, 1, 2, 3}) {
      const uint32_t size = 2 * kPartElements + 5;
      StepWorld world(ParametersOnly(size), absl::nullopt, {options});
      Values gradient(size, 1);
      if (changed > 0) gradient[std::min<uint64_t>(changed * kPartElements, size) - 1] = 2;
      world.Add(gradient);
      world.Make();
      checksums.insert(world.checksum());
    }
  }
  EXPECT_EQ(checksums.size(), 8u);
}

TEST(WholeStepTest, HowManyThreadsWorkChangesNoBit) {
  const uint32_t size = 2 * kWord + 5;
  Values gradient(size);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = 1.0f / static_cast<float>(i + 1);
  SgdOptions sgd;
  sgd.momentum = 0.9;
  sgd.weight_decay = 0.01;
  StepWorld one(ParametersOnly(size), 0.5, {sgd});
  StepWorld four(ParametersOnly(size), 0.5, {sgd}, std::make_unique<ThreadPool>(4));
  for (int step = 0; step < 3; ++step) {
    for (StepWorld* const world : {&one, &four}) {
      world->Add(gradient);
      world->Keep(gradient);
    }
    ASSERT_EQ(one.Make(), four.Make());
    ASSERT_EQ(one.checksum(), four.checksum());
  }
}

}  // namespace
}  // namespace sluice
