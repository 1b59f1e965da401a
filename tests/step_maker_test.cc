#include "server/step_maker.h"

#include <cmath>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;

// A step maker and the parameters it moves. A step subtracts the reduced gradient.
class StepWorld {
 public:
  explicit StepWorld(const Layout& layout, absl::optional<double> clip_norm = absl::nullopt,
                     const OptimizerOptions& optimizer = SgdOptions())
      : layout_(std::make_shared<const Layout>(layout)),
        maker_(layout, optimizer, clip_norm),
        parameters_(layout.size()) {}

  void Add(const Values& gradient, uint32_t samples = 1, uint64_t staleness = 0) {
    PushHeader header;
    header.samples = samples;
    PendingPush push(header, layout_);
    EXPECT_THAT(push.Add(ChunkOf(0, gradient)), IsOk());
    maker_.Add(push, staleness, consistency);
  }

  // The parameters after the step.
  const Values& Make(double learning_rate = 1, const WriteProgress& progress = nullptr) {
    Values next(parameters_.size(), 4711);
    maker_.Make(consistency.reduction, learning_rate, parameters_, absl::MakeSpan(next), progress);
    parameters_ = next;
    return parameters_;
  }

  Consistency consistency;

 private:
  const std::shared_ptr<const Layout> layout_;
  StepMaker maker_;
  Values parameters_;
};

// Two parameters around a statistic.
Layout Mixed() { return LayoutOf({{"w", 1}, {"mean", 1, RangeKind::kStatistic}, {"b", 1}}); }

// ---- Reduction ----

TEST(StepMakerTest, ParametersMoveByTheMeanAndStatisticsBecomeIt) {
  StepWorld world(Mixed());
  world.Add({2, 10, 6});
  world.Add({4, 30, 0});
  EXPECT_THAT(world.Make(), ElementsAre(-3, 20, -3));
}

TEST(StepMakerTest, ForgetsWhatAStepWasMadeOf) {
  StepWorld world(Mixed());
  world.Add({2, 10, 6});
  world.Add({2, 10, 6});
  ASSERT_THAT(world.Make(), ElementsAre(-2, 10, -6));
  world.Add({1, 5, 1});
  EXPECT_THAT(world.Make(), ElementsAre(-3, 5, -7));
}

TEST(StepMakerTest, WeighsBySamples) {
  StepWorld world(Mixed());
  world.consistency.reduction = Reduction::kWeightedMean;
  world.Add({2, 10, 8}, 1);
  world.Add({6, 30, 0}, 3);
  EXPECT_THAT(world.Make(), ElementsAre(-5, 25, -2));
  world.Add({7, 9, 7}, 100);
  EXPECT_THAT(world.Make(), ElementsAre(-12, 9, -9));
}

TEST(StepMakerTest, IgnoresSamplesUnlessAskedToWeighThem) {
  StepWorld world(Mixed());
  world.Add({2, 10, 8}, 1);
  world.Add({6, 30, 0}, 3);
  EXPECT_THAT(world.Make(), ElementsAre(-4, 20, -4));
}

TEST(StepMakerTest, SumsParametersButNotStatistics) {
  StepWorld world(Mixed());
  world.consistency.reduction = Reduction::kSum;
  world.Add({2, 10, 6});
  world.Add({4, 30, 0});
  EXPECT_THAT(world.Make(), ElementsAre(-6, 20, -6));
}

TEST(StepMakerTest, DiscountsStaleGradientsButNotStatistics) {
  StepWorld world(Mixed());
  world.consistency.discount_stale = true;
  world.Add({4, 10, 4}, 1, 3);
  world.Add({4, 30, 0}, 1, 0);
  EXPECT_THAT(world.Make(), ElementsAre(-(1 + 4) / 2.0, 20, -1 / 2.0));
}

TEST(StepMakerTest, IgnoresStalenessUnlessAskedToDiscountIt) {
  StepWorld world(Mixed());
  world.Add({4, 10, 4}, 1, 3);
  EXPECT_THAT(world.Make(), ElementsAre(-4, 10, -4));
}

TEST(StepMakerTest, DiscountsWhatItWeighs) {
  StepWorld world(Mixed());
  world.consistency.reduction = Reduction::kWeightedMean;
  world.consistency.discount_stale = true;
  world.Add({8, 10, 8}, 3, 1);
  world.Add({4, 30, 0}, 1, 0);
  EXPECT_THAT(world.Make(), ElementsAre(-(3 * 8 / 2 + 4) / 4.0, (3 * 10 + 30) / 4.0, -3));
}

TEST(StepMakerTest, OfNothingMakesAnEqualStep) {
  StepWorld world(Mixed());
  world.Add({2, 10, 6});
  const Values before = world.Make();
  EXPECT_EQ(world.Make(), before);
}

// ---- The optimizer ----

TEST(StepMakerTest, TakesEachStepsOwnLearningRate) {
  StepWorld world(ParametersOnly(1));
  world.Add({2});
  EXPECT_THAT(world.Make(0.5), ElementsAre(-1));
  world.Add({2});
  EXPECT_THAT(world.Make(2), ElementsAre(-5));
}

// Momentum must begin with the first gradient, not with the first step.
TEST(StepMakerTest, AStepOfNothingIsNotTheOptimizersFirst) {
  SgdOptions options;
  options.momentum = 0.5;
  options.dampening = 0.75;
  StepWorld world(ParametersOnly(1), absl::nullopt, options);
  EXPECT_THAT(world.Make(), ElementsAre(0));
  world.Add({8});
  EXPECT_THAT(world.Make(), ElementsAre(-8));
  world.Add({8});
  EXPECT_THAT(world.Make(), ElementsAre(-8 - (0.5 * 8 + 0.25 * 8)));
}

TEST(StepMakerTest, AveragesParametersAndStatisticsAlike) {
  AveragingOptions options;
  options.moving_rate = 0.5;
  StepWorld world(Mixed(), absl::nullopt, options);
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

// ---- Parts ----

// Three parts, the last a short one; ranges of both kinds cross their edges.
constexpr uint32_t kPart = 1 << 18;

Layout Long() {
  return LayoutOf({{"a", kPart - 1}, {"mean", kPart + 1, RangeKind::kStatistic}, {"b", 5}});
}

TEST(StepMakerTest, TellsHowFarItHasWritten) {
  StepWorld world(Long());
  world.Add(Values(2 * kPart + 5, 2));
  std::vector<uint64_t> ends;
  world.Make(1, [&ends](uint64_t end) { ends.push_back(end); });
  EXPECT_THAT(ends, ElementsAre(kPart, 2 * kPart, 2 * kPart + 5));
}

TEST(StepMakerTest, TheEdgesOfPartsShowInNoElement) {
  StepWorld world(Long());
  world.Add(Values(2 * kPart + 5, 2));
  const Values& made = world.Make();
  EXPECT_THAT(absl::MakeConstSpan(made).subspan(0, kPart - 1), Each(-2));
  EXPECT_THAT(absl::MakeConstSpan(made).subspan(kPart - 1, kPart + 1), Each(2));
  EXPECT_THAT(absl::MakeConstSpan(made).subspan(2 * kPart), Each(-2));
}

TEST(StepMakerTest, HasWrittenWhatItTellsOf) {
  const Layout layout = ParametersOnly(2 * kPart);
  StepMaker maker(layout, SgdOptions(), absl::nullopt);
  PendingPush push(PushHeader(), std::make_shared<const Layout>(layout));
  ASSERT_THAT(push.Add(ChunkOf(0, Values(2 * kPart, 1))), IsOk());
  maker.Add(push, 0, Consistency());
  Values next(2 * kPart, 4711);
  std::vector<float> last_written;
  std::vector<float> first_unwritten;
  maker.Make(Reduction::kMean, 1, Values(2 * kPart), absl::MakeSpan(next), [&](uint64_t end) {
    last_written.push_back(next[end - 1]);
    if (end < next.size()) first_unwritten.push_back(next[end]);
  });
  EXPECT_THAT(last_written, ElementsAre(-1, -1));
  EXPECT_THAT(first_unwritten, ElementsAre(4711));
}

}  // namespace
}  // namespace sluice
