#include "server/optimizers/sgd_optimizer.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/optimizers/optimizer.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int kSteps = 100;
constexpr float kWorkers = 3;

// torch::optim::SGD as its documentation states it, for one element, in double precision.
class OracleElement {
 public:
  explicit OracleElement(double parameter) : parameter_(parameter) {}

  void Step(const SgdOptions& o, double gradient) {
    double d = gradient + o.weight_decay * parameter_;
    if (o.momentum != 0) {
      buffer_ = has_buffer_ ? o.momentum * buffer_ + (1 - o.dampening) * d : d;
      has_buffer_ = true;
      d = o.nesterov ? d + o.momentum * buffer_ : buffer_;
    }
    parameter_ -= o.learning_rate * d;
  }

  double parameter() const { return parameter_; }

 private:
  double parameter_;
  double buffer_ = 0;
  bool has_buffer_ = false;
};

// Numbers in [-1, 1), the same ones at each call.
Values Numbers(size_t size, uint32_t seed) {
  Values values(size);
  for (float& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(seed >> 8) / (1 << 23) - 1;
  }
  return values;
}

OptimizerStep StepOf(const SgdOptions& options, float divisor, bool first) {
  OptimizerStep step;
  step.number = first ? 1 : 2;
  step.divisor = divisor;
  step.learning_rates = {options.learning_rate};
  return step;
}

// One step of all elements, in pieces of at most that size.
void Apply(Optimizer& optimizer, const OptimizerStep& step, const Values& sum,
           const Values& current, Values& next, size_t piece = 1000000) {
  optimizer.Begin(step);
  for (size_t begin = 0; begin < sum.size(); begin += piece) {
    const auto part = [&](const Values& values) {
      return absl::MakeConstSpan(values).subspan(begin, piece);
    };
    optimizer.Apply(
        {0, begin, part(sum), part(current), absl::MakeSpan(next).subspan(begin, piece)});
  }
}

// ---- Against the formulas ----

std::vector<SgdOptions> AllCombinations() {
  std::vector<SgdOptions> all;
  for (const double momentum : {0.0, 0.5, 0.9}) {
    for (const double dampening : {0.0, 0.25, -0.5}) {
      for (const double weight_decay : {0.0, 0.01}) {
        for (const bool nesterov : {false, true}) {
          SgdOptions options;
          options.learning_rate = 0.1;
          options.momentum = momentum;
          options.dampening = dampening;
          options.weight_decay = weight_decay;
          options.nesterov = nesterov;
          if (options.Validate().ok()) all.push_back(options);
        }
      }
    }
  }
  return all;
}

std::string NameOf(const ::testing::TestParamInfo<SgdOptions>& info) {
  const SgdOptions& o = info.param;
  return absl::StrReplaceAll(absl::StrCat("Momentum", o.momentum, "Dampening", o.dampening, "Decay",
                                          o.weight_decay, o.nesterov ? "Nesterov" : ""),
                             {{".", "p"}, {"-", "Minus"}});
}

class SgdOptimizerFormulasTest : public ::testing::TestWithParam<SgdOptions> {};

TEST_P(SgdOptimizerFormulasTest, MakesOfAHundredStepsWhatTheFormulasMake) {
  constexpr size_t kSize = 1082;
  const auto optimizer = MakeSgdOptimizer({GetParam()}, kSize);
  Values current = Numbers(kSize, 1);
  Values next(kSize);
  std::vector<OracleElement> oracle(current.begin(), current.end());
  for (int step = 0; step < kSteps; ++step) {
    const Values sum = Numbers(kSize, 100 + step);
    Apply(*optimizer, StepOf(GetParam(), kWorkers, step == 0), sum, current, next, 37 + step);
    for (size_t i = 0; i < kSize; ++i) {
      oracle[i].Step(GetParam(), static_cast<double>(sum[i]) / kWorkers);
      ASSERT_NEAR(next[i], oracle[i].parameter(), 1e-5 + 1e-6 * std::abs(oracle[i].parameter()))
          << "parameter " << i << ", step " << step;
    }
    std::swap(current, next);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SgdOptimizerFormulasTest, ::testing::ValuesIn(AllCombinations()),
                         NameOf);

TEST(SgdOptimizerCombinationsTest, AreThoseThatTorchAllows) {
  // 3 momenta × 3 dampenings × 2 decays, and Nesterov for 2 momenta without dampening × 2 decays.
  EXPECT_EQ(AllCombinations().size(), 22u);
}

// ---- By hand, in numbers that float32 holds exactly ----

// Two steps of one parameter that starts at 8, with the mean gradients 4 and 2.
Values TwoSteps(const SgdOptions& options) {
  const auto optimizer = MakeSgdOptimizer({options}, 1);
  Values first(1), second(1);
  Apply(*optimizer, StepOf(options, 2, true), {8}, {8}, first);
  Apply(*optimizer, StepOf(options, 4, false), {8}, first, second);
  return {first[0], second[0]};
}

SgdOptions Half() {
  SgdOptions options;
  options.learning_rate = 0.5;
  return options;
}

TEST(SgdOptimizerTest, SubtractsTheMeanGradientTimesTheLearningRate) {
  EXPECT_THAT(TwoSteps(Half()), ElementsAre(8 - 2, 6 - 1));
}

TEST(SgdOptimizerTest, AddsWeightDecayToTheGradient) {
  SgdOptions options = Half();
  options.weight_decay = 0.25;
  EXPECT_THAT(TwoSteps(options), ElementsAre(8 - 0.5 * (4 + 2), 5 - 0.5 * (2 + 1.25)));
}

TEST(SgdOptimizerTest, DampensFromTheSecondStepOn) {
  SgdOptions options = Half();
  options.momentum = 0.5;
  options.dampening = 0.75;
  EXPECT_THAT(TwoSteps(options), ElementsAre(8 - 0.5 * 4, 6 - 0.5 * (0.5 * 4 + 0.25 * 2)));
}

TEST(SgdOptimizerTest, LooksAheadWithNesterovMomentum) {
  SgdOptions options = Half();
  options.momentum = 0.5;
  options.nesterov = true;
  EXPECT_THAT(TwoSteps(options),
              ElementsAre(8 - 0.5 * (4 + 0.5 * 4), 5 - 0.5 * (2 + 0.5 * (0.5 * 4 + 2))));
}

TEST(SgdOptimizerTest, TakesEachStepsOwnLearningRate) {
  const auto optimizer = MakeSgdOptimizer({Half()}, 1);
  Values next(1);
  OptimizerStep step = StepOf(Half(), 1, true);
  step.learning_rates = {2};
  Apply(*optimizer, step, {3}, {8}, next);
  EXPECT_THAT(next, ElementsAre(8 - 2 * 3));
  step.learning_rates = {0};
  Apply(*optimizer, step, {3}, {8}, next);
  EXPECT_THAT(next, ElementsAre(8));
}

TEST(SgdOptimizerTest, IsWhatSgdOptionsMake) {
  const auto optimizer = MakeOptimizer({Half()}, 1);
  Values next(1);
  Apply(*optimizer, StepOf(Half(), 2, true), {8}, {8}, next);
  EXPECT_THAT(next, ElementsAre(6));
}

// ---- Spans ----

TEST(SgdOptimizerTest, LeavesItsInputsAsTheyAre) {
  SgdOptions options = Half();
  options.momentum = 0.9;
  const Values sum = Numbers(1000, 1);
  const Values current = Numbers(1000, 2);
  const Values sum_before = sum;
  const Values current_before = current;
  Values next(1000);
  Apply(*MakeSgdOptimizer({options}, 1000), StepOf(options, 3, true), sum, current, next);
  EXPECT_EQ(sum, sum_before);
  EXPECT_EQ(current, current_before);
}

TEST(SgdOptimizerTest, WritesEveryElementAndNothingElse) {
  for (const double momentum : {0.0, 0.9}) {
    SgdOptions options = Half();
    options.momentum = momentum;
    Values all(1084, 4711);
    const Values ones(1082, 1);
    const auto optimizer = MakeSgdOptimizer({options}, 2000);
    optimizer->Begin(StepOf(options, 1, true));
    optimizer->Apply({0, 900, ones, ones, absl::MakeSpan(all).subspan(1, 1082)});
    EXPECT_EQ(all.front(), 4711);
    EXPECT_EQ(all.back(), 4711);
    all.pop_back();
    all.front() = 0.5f;
    EXPECT_THAT(all, Each(0.5f));
  }
}

TEST(SgdOptimizerTest, RemembersMomentumIfThereIsAny) {
  EXPECT_TRUE(MakeSgdOptimizer({Half()}, 3)->slots().empty());
  SgdOptions options = Half();
  options.momentum = 0.5;
  const auto optimizer = MakeSgdOptimizer({options}, 3);
  const std::vector<OptimizerSlot> slots = optimizer->slots();
  ASSERT_EQ(slots.size(), 1u);
  EXPECT_STREQ(slots[0].name, "momentum_buffer");
  EXPECT_THAT(slots[0].values, ElementsAre(0, 0, 0));
  Values next(3);
  Apply(*optimizer, StepOf(options, 2, true), {2, 4, 6}, {0, 0, 0}, next);
  EXPECT_THAT(slots[0].values, ElementsAre(1, 2, 3));
}

// Elementwise: a parameter's bits depend neither on where in the vector it lies nor on the cut.
TEST(SgdOptimizerTest, GivesEqualElementsEqualBits) {
  SgdOptions options;
  options.learning_rate = 0.1;
  options.momentum = 0.9;
  options.weight_decay = 1e-4;
  const auto optimizer = MakeSgdOptimizer({options}, 1035);
  Values current(1035, 0.3f);
  Values next(1035);
  for (int step = 0; step < kSteps; ++step) {
    Apply(*optimizer, StepOf(options, kWorkers, step == 0), Values(1035, 0.7f * step), current,
          next, 1 + 7 * step);
    std::swap(current, next);
  }
  for (const float value : current) {
    ASSERT_EQ(std::memcmp(&value, &current[0], sizeof(value)), 0);
  }
}

}  // namespace
}  // namespace sluice
