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

// torch::optim::SGD as its documentation states it, for one element.
class SgdByFormula {
 public:
  explicit SgdByFormula(const SgdOptions& options) : o_(options) {}

  double Next(double parameter, double gradient) {
    double d = gradient + o_.weight_decay * parameter;
    if (o_.momentum != 0) {
      buffer_ = first_ ? d : o_.momentum * buffer_ + (1 - o_.dampening) * d;
      d = o_.nesterov ? d + o_.momentum * buffer_ : buffer_;
    }
    first_ = false;
    return parameter - o_.learning_rate * d;
  }

 private:
  SgdOptions o_;
  double buffer_ = 0;
  bool first_ = true;
};

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
          if (Validate(options).ok()) all.push_back(options);
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
  ExpectFollows(GetParam(), SgdByFormula(GetParam()));
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
  const auto optimizer = MakeOptimizer({options}, 1);
  Values first(1), second(1);
  Apply(*optimizer, StepOf(1, 2, options.learning_rate), {8}, {8}, first);
  Apply(*optimizer, StepOf(2, 4, options.learning_rate), {8}, first, second);
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
  const auto optimizer = MakeOptimizer({Half()}, 1);
  Values next(1);
  Apply(*optimizer, StepOf(1, 1, 2), {3}, {8}, next);
  EXPECT_THAT(next, ElementsAre(8 - 2 * 3));
  Apply(*optimizer, StepOf(1, 1, 0), {3}, {8}, next);
  EXPECT_THAT(next, ElementsAre(8));
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
  Apply(*MakeOptimizer({options}, 1000), StepOf(1, 3, options.learning_rate), sum, current, next);
  EXPECT_EQ(sum, sum_before);
  EXPECT_EQ(current, current_before);
}

TEST(SgdOptimizerTest, RemembersMomentumIfThereIsAny) {
  EXPECT_TRUE(MakeOptimizer({Half()}, 3)->slots().empty());
  SgdOptions options = Half();
  options.momentum = 0.5;
  const auto optimizer = MakeOptimizer({options}, 3);
  const std::vector<OptimizerSlot> slots = optimizer->slots();
  ASSERT_EQ(slots.size(), 1u);
  EXPECT_STREQ(slots[0].name, "momentum_buffer");
  EXPECT_THAT(slots[0].values, ElementsAre(0, 0, 0));
  Values next(3);
  Apply(*optimizer, StepOf(1, 2, options.learning_rate), {2, 4, 6}, {0, 0, 0}, next);
  EXPECT_THAT(optimizer->slots()[0].values, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace sluice
