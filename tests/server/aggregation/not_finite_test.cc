// Steps of every optimizer that would not be finite: in a slot alone, in a parameter alone, or in
// the sum of finite gradients. Nothing of them stays.

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/aggregation/staged_vector.h"
#include "tests/testing/shard/step_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr uint32_t kSize = 5003;
constexpr uint64_t kBad = 4321;
constexpr float kHuge = 3e38f;  // finite; twice as much is not

struct Case {
  std::string name;
  OptimizerOptions options;
  // Of element kBad. Slots that are not named here stay as a first step left them.
  float parameter = 1;
  std::vector<float> slots;
  std::vector<float> gradients;
  double learning_rate = 1;
};

template <typename Options, typename Change>
OptimizerOptions With(Change change) {
  Options options;
  change(options);
  return options;
}

OptimizerOptions Momentum() {
  return With<SgdOptions>([](SgdOptions& o) { o.momentum = 0.5; });
}

std::vector<Case> Cases() {
  const auto rms = [](double alpha, double momentum) {
    return With<RmsPropOptions>([&](RmsPropOptions& o) {
      o.alpha = alpha;
      o.momentum = momentum;
    });
  };
  const OptimizerOptions amsgrad = With<AdamOptions>([](AdamOptions& o) { o.amsgrad = true; });
  const OptimizerOptions half = With<AveragingOptions>([](auto& o) { o.moving_rate = 0.5; });
  const OptimizerOptions outer = With<AveragingOptions>([](auto& o) { o.outer_momentum = 0.5; });
  std::vector<Case> cases = {
      {"AdamSlot", AdamOptions(), 1, {}, {1e22f}},
      {"AdamAmsgradSlot", amsgrad, 1, {}, {-1e22f}},
      {"AdamWSlot", AdamWOptions(), 1, {}, {1e22f}},
      {"AdagradSlot", AdagradOptions(), 1, {}, {1e20f}},
      {"RmsPropSlot", RmsPropOptions(), 1, {}, {1e22f}},
      {"LambSlot", LambOptions(), 1, {}, {1e22f}},
      {"SgdParameter", SgdOptions(), kHuge, {}, {-kHuge}},
      {"MomentumParameter", Momentum(), kHuge, {0}, {-kHuge}},
      {"MomentumBoth", Momentum(), 1, {kHuge}, {kHuge}},
      {"AdamParameter", AdamOptions(), 1, {1e35f, 0}, {0}},
      {"AdamWParameter", AdamWOptions(), kHuge, {}, {1}, 1e6},
      {"RmsPropParameter", rms(1, 0), 1, {0}, {1e31f}},
      {"RmsPropMomentum", rms(0.9, 1), 1, {1, kHuge}, {1e15f}, 1e6},
      {"LambParameter", LambOptions(), kHuge, {}, {1}, 1e4},
      {"AveragingParameter", half, -kHuge, {}, {kHuge}},
      {"AveragingSlot", outer, -kHuge, {}, {kHuge}},
  };
  for (const OptimizerOptions& options : AllOptimizers()) {
    if (IsOfProgram(options)) continue;
    cases.push_back({std::string(OptimizerName(options)) + "_sum", options, 1, {}, {kHuge, kHuge}});
  }
  return cases;
}

class NotFiniteOptimizerTest : public ::testing::TestWithParam<Case> {
 protected:
  NotFiniteOptimizerTest() : world_(WorldOf(1)), other_(WorldOf(4)) {}

  static std::unique_ptr<StepWorld> WorldOf(uint32_t threads) {
    const Case& one = GetParam();
    auto world = std::make_unique<StepWorld>(ParametersOnly(kSize), absl::nullopt,
                                             OptimizerConfig{one.options, {}},
                                             std::make_unique<ThreadPool>(threads));
    Values parameters(kSize, 1);
    parameters[kBad] = one.parameter;
    world->set_parameters(parameters);
    world->Add(Gradient(0));
    world->Make(0);
    const std::vector<OptimizerSlot> slots = world->executor().slots();
    for (size_t i = 0; i < one.slots.size(); ++i) slots[i].values[kBad] = one.slots[i];
    if (!one.slots.empty()) world->set_optimizer_steps(50);
    return world;
  }

  // Averaging takes parameters in place of gradients.
  static Values Gradient(float at_bad) {
    Values gradient(kSize, 0.25f);
    gradient[kBad] = at_bad;
    if (std::holds_alternative<AveragingOptions>(GetParam().options) && at_bad == 0) {
      gradient[kBad] = GetParam().parameter;
    }
    return gradient;
  }

  static std::vector<Values> SlotsOf(StepWorld& world) {
    std::vector<Values> slots;
    for (const OptimizerSlot& slot : world.executor().slots()) {
      slots.emplace_back(slot.values.begin(), slot.values.end());
    }
    return slots;
  }

  const std::unique_ptr<StepWorld> world_;
  const std::unique_ptr<StepWorld> other_;  // makes no such step
};

TEST_P(NotFiniteOptimizerTest, ChangesNothing) {
  for (const bool on_the_way : {false, true}) {
    const std::vector<Values> slots = SlotsOf(*world_);
    const Values parameters = world_->parameters();
    const uint64_t steps = world_->executor().optimizer_steps();
    const std::vector<float>& gradients = GetParam().gradients;
    for (size_t i = 0; i < gradients.size(); ++i) {
      const bool last = on_the_way && i + 1 == gradients.size();
      last ? world_->Keep(Gradient(gradients[i])) : world_->Add(Gradient(gradients[i]));
    }
    world_->Make(GetParam().learning_rate);
    ASSERT_EQ(world_->bad(), kBad) << on_the_way;
    EXPECT_TRUE(SlotsOf(*world_) == slots) << on_the_way;
    EXPECT_TRUE(world_->parameters() == parameters) << on_the_way;
    EXPECT_EQ(world_->executor().optimizer_steps(), steps);
    EXPECT_EQ(world_->checksum(), 0u);
  }
}

TEST_P(NotFiniteOptimizerTest, LeavesNoTraceInTheNextStep) {
  for (const float gradient : GetParam().gradients) world_->Add(Gradient(gradient));
  world_->Make(GetParam().learning_rate);
  ASSERT_EQ(world_->bad(), kBad);
  for (StepWorld* const world : {world_.get(), other_.get()}) {
    world->Add(Gradient(0));
    world->Make(1e-9);
  }
  EXPECT_EQ(world_->bad(), other_->bad());
  EXPECT_EQ(world_->checksum(), other_->checksum());
  EXPECT_TRUE(world_->parameters() == other_->parameters());
}

INSTANTIATE_TEST_SUITE_P(All, NotFiniteOptimizerTest, ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           return info.param.name;
                         });

// ---- Foreign memory ----

// A gradient of one chunk in memory that the test can still write, as that of another process.
StagedVector ForeignGradient(const std::shared_ptr<Values>& memory) {
  StagedVector gradient(std::make_shared<const Layout>(ParametersOnly(memory->size())));
  TensorChunk chunk;
  chunk.pieces = {AsPiece(*memory)};
  chunk.owner = memory;
  chunk.foreign = true;
  EXPECT_THAT(gradient.Add(std::move(chunk)), IsOk());
  gradient.Seal();
  return gradient;
}

// Every optimizer makes a finite step, whether the gradient is added before or on the way.
TEST(ForeignMemoryTest, AGradientThatChangesAfterItsCheckCannotMakeAStepInfinite) {
  constexpr uint32_t kLarge = 40000;  // chunks of few elements are copied
  for (const OptimizerOptions& options : AllOptimizers()) {
    if (IsOfProgram(options)) continue;
    for (const bool on_the_way : {false, true}) {
      Serial serial;
      const Stripes whole(kLarge, 1);
      StepDirector director(ParametersOnly(kLarge), {options}, whole);
      StripeExecutor stripe(ParametersOnly(kLarge), {options}, whole, 0, serial);
      Values current(kLarge, 1);
      Values next(kLarge);
      for (int step = 0; step < 3; ++step) {
        const auto memory = std::make_shared<Values>(kLarge, 2.0f);
        const StagedVector gradient = ForeignGradient(memory);
        (*memory)[77] = 1e38f;
        (*memory)[30001] = std::numeric_limits<float>::quiet_NaN();
        const Addend addend = {&gradient, director.Count(HeaderOf(1), 0, StepTerms())};
        on_the_way ? stripe.Keep(addend) : stripe.Add(addend);
        EXPECT_EQ(MakeOn(stripe, director, {Consistency(), {0.1}, nullptr, absl::nullopt},
                         {current, absl::MakeSpan(next), nullptr}),
                  absl::nullopt);
        EXPECT_THAT(next,
                    ::testing::Each(::testing::Truly([](float p) { return std::isfinite(p); })));
        current.swap(next);
      }
    }
  }
}

}  // namespace
}  // namespace sluice
