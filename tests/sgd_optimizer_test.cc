#include "server/sgd_optimizer.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

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

std::shared_ptr<const Layout> Shared(const Layout& layout) {
  return std::make_shared<const Layout>(layout);
}

// Parameters and statistics in turn, alone and side by side, short and long.
Layout Interleaved() {
  return LayoutOf({{"conv", 37},
                   {"mean1", 5, RangeKind::kStatistic},
                   {"var1", 5, RangeKind::kStatistic},
                   {"linear", 1030},
                   {"bias", 1},
                   {"mean2", 1, RangeKind::kStatistic},
                   {"last", 3}});
}

bool IsStatistic(const Layout& layout, size_t element) {
  for (const LayoutRange& range : layout.ranges()) {
    if (element < range.end()) return range.kind == RangeKind::kStatistic;
  }
  return false;
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
  const Layout layout = Interleaved();
  SgdOptimizer optimizer(GetParam(), Shared(layout));
  Values current = Numbers(layout.size(), 1);
  Values next(layout.size());
  std::vector<OracleElement> oracle(current.begin(), current.end());
  for (int step = 0; step < kSteps; ++step) {
    const Values sum = Numbers(layout.size(), 100 + step);
    optimizer.Apply(sum, kWorkers, current, absl::MakeSpan(next));
    for (size_t i = 0; i < layout.size(); ++i) {
      if (IsStatistic(layout, i)) {
        ASSERT_EQ(next[i], sum[i] / kWorkers) << "statistic " << i << ", step " << step;
        continue;
      }
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
  SgdOptimizer optimizer(options, Shared(ParametersOnly(1)));
  const Values start = {8};
  Values first(1), second(1);
  optimizer.Apply(Values{8}, 2, start, absl::MakeSpan(first));
  optimizer.Apply(Values{8}, 4, first, absl::MakeSpan(second));
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

// ---- Spans ----

TEST(SgdOptimizerTest, LeavesItsInputsAsTheyAre) {
  SgdOptions options = Half();
  options.momentum = 0.9;
  const Layout layout = Interleaved();
  SgdOptimizer optimizer(options, Shared(layout));
  const Values sum = Numbers(layout.size(), 1);
  const Values current = Numbers(layout.size(), 2);
  const Values sum_before = sum;
  const Values current_before = current;
  Values next(layout.size());
  optimizer.Apply(sum, 3, current, absl::MakeSpan(next));
  EXPECT_EQ(sum, sum_before);
  EXPECT_EQ(current, current_before);
}

TEST(SgdOptimizerTest, WritesEveryElementAndNothingElse) {
  const Layout layout = Interleaved();
  Values all(layout.size() + 2, 4711);
  SgdOptimizer(Half(), Shared(layout))
      .Apply(Values(layout.size(), 1), 1, Values(layout.size(), 1),
             absl::MakeSpan(all).subspan(1, layout.size()));
  EXPECT_EQ(all.front(), 4711);
  EXPECT_EQ(all.back(), 4711);
  for (size_t i = 0; i < layout.size(); ++i) {
    ASSERT_EQ(all[i + 1], IsStatistic(layout, i) ? 1 : 0.5f) << i;
  }
}

// Elementwise: a parameter's bits do not depend on where in the vector it lies.
TEST(SgdOptimizerTest, GivesEqualElementsEqualBits) {
  SgdOptions options;
  options.learning_rate = 0.1;
  options.momentum = 0.9;
  options.weight_decay = 1e-4;
  SgdOptimizer optimizer(options, Shared(LayoutOf({{"a", 1031}, {"b", 3}, {"c", 1}})));
  Values current(1035, 0.3f);
  Values next(1035);
  for (int step = 0; step < kSteps; ++step) {
    optimizer.Apply(Values(1035, 0.7f * step), kWorkers, current, absl::MakeSpan(next));
    std::swap(current, next);
  }
  for (const float value : current) {
    ASSERT_EQ(std::memcmp(&value, &current[0], sizeof(value)), 0);
  }
}

}  // namespace
}  // namespace sluice
