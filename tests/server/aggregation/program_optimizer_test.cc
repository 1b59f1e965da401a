#include "common/protocol/program_optimizer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/aggregation/checked_optimizer.h"
#include "tests/testing/layouts.h"
#include "tests/testing/shard/step_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr uint32_t kFour = 4;
constexpr float kFails = 13;

// A step needs the whole vector, and what it remembers has one float more, which counts steps:
//   p ← p − rate · (g + mean of g) · (count + 1)
class WholeStep final : public ProgramOptimizer {
 public:
  uint64_t state_size() const override { return kFour + 1; }

  absl::Status Step(const ProgramStep& step) override {
    if (step.gradient[0] == kFails) return absl::UnknownError("it was told to fail");
    float sum = 0;
    for (const float g : step.gradient) sum += g;
    for (size_t i = 0; i < kFour; ++i) {
      const float moved = (step.gradient[i] + sum / kFour) * (step.state[kFour] + 1);
      step.parameters[i] -= static_cast<float>(step.learning_rates[0]) * moved;
      step.state[i] += step.gradient[i];
      step.gradient[i] = kFails;  // it may
    }
    step.state[kFour] += 1;
    return absl::OkStatus();
  }
};

std::unique_ptr<StepWorld> World() {
  return std::make_unique<StepWorld>(ParametersOnly(kFour), absl::nullopt,
                                     OptimizerConfig{ProgramOptions()}, std::make_unique<Serial>(),
                                     std::make_unique<WholeStep>());
}

TEST(ProgramOptimizerTest, StepsWithTheWholeMeanAndWithWhatItRemembers) {
  const auto world = World();
  world->Add({1, 2, 3, 2});
  world->Keep({3, 2, 1, 2});  // the mean is 2
  EXPECT_THAT(world->Make(0.5), Each(-2));
  world->Add({4, 0, 0, 0});
  EXPECT_THAT(world->Make(0.5), ElementsAre(-7, -3, -3, -3));
  const std::vector<OptimizerSlot> slots = world->executor().slots();
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_THAT(slots[0].values, ElementsAre(6, 2, 2, 2));
  EXPECT_THAT(slots[1].values, ElementsAre(2, 0, 0, 0));
  EXPECT_STREQ(slots[0].name, "state_0");
  EXPECT_STREQ(slots[1].name, "state_1");
}

TEST(ProgramOptimizerTest, AStepThatFailsOrIsNotFiniteLeavesAllAsItWas) {
  const auto world = World();
  world->Add({2, 2, 2, 2});
  const Values before = world->Make(0.5);
  world->Add({0, 3e38f, 3e38f, 0});
  EXPECT_EQ(world->Make(1), before);
  EXPECT_EQ(world->bad(), 0u);
  world->Add({kFails, 0, 0, 0});
  EXPECT_EQ(world->Make(1), before);
  EXPECT_EQ(world->bad(), 0u);
  EXPECT_THAT(world->executor().slots()[1].values, ElementsAre(1, 0, 0, 0));
  world->Add({4, 0, 0, 0});
  EXPECT_THAT(world->Make(0.5), ElementsAre(-7, -3, -3, -3));
}

TEST(ProgramOptimizerTest, AnotherWithItsStateMakesTheSameBits) {
  const auto world = World();
  world->Add({1, 2, 3, 4});
  const auto other = World();
  other->set_parameters(world->Make(0.3));
  const std::vector<OptimizerSlot> slots = world->executor().slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    std::copy(slots[i].values.begin(), slots[i].values.end(),
              other->executor().slots()[i].values.begin());
  }
  other->set_optimizer_steps(1);
  for (StepWorld* const each : {world.get(), other.get()}) {
    each->Add({0.1f, 0.7f, -3, 5});
    each->Make(0.3);
  }
  EXPECT_EQ(other->parameters(), world->parameters());
  EXPECT_EQ(other->checksum(), world->checksum());
}

TEST(ProgramOptimizerTest, AServerWhoseProgramHasNoneMakesNoStep) {
  StepWorld world(ParametersOnly(kFour), absl::nullopt, {ProgramOptions()});
  world.Add({1, 2, 3, 4});
  EXPECT_THAT(world.Make(1), Each(0));
  EXPECT_EQ(world.bad(), 0u);
}

}  // namespace
}  // namespace sluice
