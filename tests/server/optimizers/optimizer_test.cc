// What holds for every optimizer. Their formulas are checked by the tests of each of them and by
// tests/worker/torch/optimizers_torch_test.cc.

#include "server/optimizers/optimizer.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/thread_pool.h"
#include "common/protocol/optimizer_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/optimizers/formula.h"
#include "tests/testing/shard/step_world.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

struct Case {
  std::string name;
  OptimizerOptions options;
};

// Every optimizer of the table, with every subset of the options that are off or 0 by default.
std::vector<Case> AllCases() {
  std::vector<Case> valid;
  for (OptimizerOptions known : AllOptimizers()) {
    if (IsOfProgram(known)) continue;  // ../aggregation/program_optimizer_test.cc
    std::vector<Case> all = {{std::string(OptimizerName(known)), known}};
    const std::vector<OptionRef> options = OptionsOf(known);
    for (size_t i = 0; i < options.size(); ++i) {
      const OptionInfo& info = options[i].info;
      if (options[i].value() != 0 && info.domain != OptionDomain::kRate) continue;
      const std::vector<Case> before = all;
      for (Case more : before) {
        OptionsOf(more.options)[i].set(0.5);
        all.push_back({absl::StrCat(more.name, "_", info.name), more.options});
      }
    }
    std::copy_if(all.begin(), all.end(), std::back_inserter(valid),
                 [](const Case& one) { return Validate(one.options).ok(); });
  }
  return valid;
}

// 0 and −0 differ.
std::vector<uint32_t> BitsOf(const Values& values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

class OptimizerTest : public ::testing::TestWithParam<Case> {};

// Elementwise: a parameter's bits depend neither on where in the vector it lies, so that some
// instructions take it alone and others beside fifteen more, nor on the cut.
TEST_P(OptimizerTest, GivesEqualElementsEqualBits) {
  const auto optimizer = MakeOptimizer({GetParam().options}, 1035);
  Values current(1035, 0.3f);
  Values next(1035);
  for (int step = 0; step < 50; ++step) {
    const float gradient = static_cast<float>(step % 7) - 2.9f;
    Apply(*optimizer, StepOf(step + 1, 3, 0.01), Values(1035, gradient), current, next,
          1 + 7 * step);
    std::swap(current, next);
  }
  EXPECT_THAT(BitsOf(current), Each(BitsOf(current).front()));
}

TEST_P(OptimizerTest, WritesEveryElementAndNothingElse) {
  Values all(1084, 4711);
  const Values numbers = Numbers(1082, 1);
  const auto optimizer = MakeOptimizer({GetParam().options}, 2000);
  optimizer->Begin(StepOf(1, 3, 0.01));
  optimizer->Apply({0, 900, numbers, numbers, absl::MakeSpan(all).subspan(1, 1082)});
  EXPECT_EQ(all.front(), 4711);
  EXPECT_EQ(all.back(), 4711);
  const absl::Span<const float> written = absl::MakeConstSpan(all).subspan(1, 1082);
  EXPECT_THAT(written, Each(::testing::Lt(100)));
  for (const OptimizerSlot& slot : optimizer->slots()) {
    EXPECT_THAT(slot.values.subspan(0, 900), Each(0)) << slot.name;
    EXPECT_THAT(slot.values.subspan(900 + 1082), Each(0)) << slot.name;
  }
}

TEST_P(OptimizerTest, HasTheSlotsThatItsOptionsNeed) {
  const auto optimizer = MakeOptimizer({GetParam().options}, 3);
  std::vector<std::string> names, needed;
  for (const OptimizerSlot& slot : optimizer->slots()) {
    names.emplace_back(slot.name);
    EXPECT_THAT(slot.values, ElementsAre(0, 0, 0));
  }
  for (const SlotInfo& slot : SlotsOf(GetParam().options)) {
    if (slot.needed) needed.emplace_back(slot.name);
  }
  EXPECT_EQ(names, needed);
}

// Checkpoints name slots. These names are those of torch::optim and must not change.
TEST(OptimizerSlotsTest, HaveTheNamesThatCheckpointsUse) {
  const auto names_of = [](const OptimizerOptions& options) {
    std::vector<std::string> names;
    for (const OptimizerSlot& slot : MakeOptimizer({options}, 3)->slots()) {
      names.emplace_back(slot.name);
    }
    return names;
  };
  SgdOptions momentum;
  momentum.momentum = 0.9;
  AdamOptions amsgrad;
  amsgrad.amsgrad = true;
  RmsPropOptions all;
  all.centered = true;
  all.momentum = 0.9;
  EXPECT_THAT(names_of(SgdOptions()), ElementsAre());
  EXPECT_THAT(names_of(momentum), ElementsAre("momentum_buffer"));
  EXPECT_THAT(names_of(AdamOptions()), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(names_of(amsgrad), ElementsAre("exp_avg", "exp_avg_sq", "max_exp_avg_sq"));
  EXPECT_THAT(names_of(AdamWOptions()), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(names_of(AdagradOptions()), ElementsAre("sum"));
  EXPECT_THAT(names_of(RmsPropOptions()), ElementsAre("square_avg"));
  EXPECT_THAT(names_of(all), ElementsAre("square_avg", "momentum_buffer", "grad_avg"));
  EXPECT_THAT(names_of(LambOptions()), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(names_of(AveragingOptions()), ElementsAre());
}

// With parameters, slots and the number of steps alone, to the bit.
TEST_P(OptimizerTest, ItsLifeGoesOnInAnother) {
  constexpr uint32_t kSize = 500;
  StepWorld first(ParametersOnly(kSize), absl::nullopt, {GetParam().options});
  StepWorld second(ParametersOnly(kSize), absl::nullopt, {GetParam().options});
  first.set_parameters(Numbers(kSize, 7));
  for (int step = 0; step < 3; ++step) {
    first.Add(Numbers(kSize, step));
    first.Make(0.01);
  }
  const std::vector<OptimizerSlot> from = first.executor().slots();
  const std::vector<OptimizerSlot> to = second.executor().slots();
  for (size_t i = 0; i < from.size(); ++i) {
    std::copy(from[i].values.begin(), from[i].values.end(), to[i].values.begin());
  }
  second.set_optimizer_steps(first.executor().optimizer_steps());
  second.set_parameters(first.parameters());
  for (StepWorld* const world : {&first, &second}) world->Add(Numbers(kSize, 99));
  EXPECT_EQ(first.Make(0.01), second.Make(0.01));
}

// Nor whether the last gradient is added on the way.
TEST_P(OptimizerTest, HowManyThreadsWorkChangesNoBit) {
  constexpr uint32_t kSize = (1 << 20) + 5;
  const Layout layout = LayoutOf({{"a", 100}, {"b", kSize - 107}, {"c", 7}});
  StepWorld one(layout, absl::nullopt, {GetParam().options});
  StepWorld four(layout, absl::nullopt, {GetParam().options}, std::make_unique<ThreadPool>(4));
  const Values gradient = Numbers(kSize, 1);
  for (StepWorld* const world : {&one, &four}) world->set_parameters(Numbers(kSize, 2));
  for (int step = 0; step < 2; ++step) {
    for (StepWorld* const world : {&one, &four}) world->Add(gradient);
    one.Add(gradient);
    four.Keep(gradient);
    ASSERT_TRUE(one.Make(0.01) == four.Make(0.01));
  }
}

// What is 0 stays 0, and finite.
TEST_P(OptimizerTest, TakesAGradientOfZeroForAParameterOfZero) {
  StepWorld world(ParametersOnly(5), absl::nullopt, {GetParam().options});
  for (int step = 0; step < 3; ++step) {
    world.Add(Values(5, 0));
    EXPECT_THAT(world.Make(), Each(0));
  }
}

TEST_P(OptimizerTest, ATryLeavesTheSlotsAndMakesTheSameParameters) {
  constexpr size_t kSize = 5003;
  const auto optimizer = MakeOptimizer({GetParam().options}, kSize);
  const auto copies = [&optimizer] {
    std::vector<Values> all;
    for (const OptimizerSlot& slot : optimizer->slots()) {
      all.emplace_back(slot.values.begin(), slot.values.end());
    }
    return all;
  };
  Values current = Numbers(kSize, 1);
  Values tried(kSize);
  Values next(kSize);
  for (int step = 1; step <= 3; ++step) {
    const Values sum = Numbers(kSize, step);
    const std::vector<Values> before = copies();
    optimizer->Begin(StepOf(step, 3, 0.01));
    EXPECT_EQ(optimizer->Try({0, 0, sum, current, absl::MakeSpan(tried)}), absl::nullopt);
    EXPECT_TRUE(copies() == before);
    Apply(*optimizer, StepOf(step, 3, 0.01), sum, current, next);
    EXPECT_TRUE(BitsOf(tried) == BitsOf(next));
    current.swap(next);
  }
}

float LargestOf(absl::Span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// What After() told is measured anew when it has become too large to tell anything.
Magnitudes Measured(Optimizer& optimizer, absl::Span<const float> parameters) {
  Magnitudes measured;
  measured.parameters = LargestOf(parameters);
  for (const OptimizerSlot& slot : optimizer.slots()) {
    measured.slots[slot.index] = LargestOf(slot.values);
  }
  return measured;
}

// Of gradients of all magnitudes.
TEST_P(OptimizerTest, NoNumberIsLargerThanItsBound) {
  constexpr size_t kSize = 300;
  const auto optimizer = MakeOptimizer({GetParam().options}, kSize);
  Values current = Numbers(kSize, 1);
  Values next(kSize);
  Magnitudes bounds = Measured(*optimizer, current);
  for (int step = 1; step <= 60; ++step) {
    Values sum = Numbers(kSize, step);
    for (float& value : sum) value = std::ldexp(value, step * 37 % 90 - 70);
    bounds.gradient = LargestOf(sum) / 3.0;
    optimizer->Begin(StepOf(step, 3, 0.01));
    const absl::optional<Magnitudes> after = optimizer->After(bounds);
    if (!after.has_value()) {
      EXPECT_TRUE(std::holds_alternative<LambOptions>(GetParam().options));
      return;
    }
    optimizer->Apply({0, 0, sum, current, absl::MakeSpan(next)});
    bounds = *after;
    EXPECT_LE(LargestOf(next), bounds.parameters) << step;
    for (const OptimizerSlot& slot : optimizer->slots()) {
      EXPECT_LE(LargestOf(slot.values), bounds.slots[slot.index]) << slot.name << " " << step;
    }
    current.swap(next);
    if (!(bounds.parameters < 1e20)) bounds = Measured(*optimizer, current);
  }
}

// Whether a step is known to be finite, or is tried first, changes no bit.
TEST_P(OptimizerTest, AStepInDoubtMakesTheSameBits) {
  constexpr uint32_t kSize = 5003;
  const Layout layout =
      LayoutOf({{"a", 100}, {"mean", 7, RangeKind::kStatistic}, {"b", kSize - 107}});
  StepWorld sure(layout, absl::nullopt, {GetParam().options});
  StepWorld doubted(layout, absl::nullopt, {GetParam().options}, std::make_unique<ThreadPool>(3));
  for (StepWorld* const world : {&sure, &doubted}) world->set_parameters(Numbers(kSize, 9));
  for (int step = 0; step < 10; ++step) {
    for (StepWorld* const world : {&sure, &doubted}) {
      world->Add(Numbers(kSize, step));
      world->Keep(Numbers(kSize, 100 + step));
    }
    doubted.set_optimizer_steps(step);  // forgets what is known of the slots
    ASSERT_TRUE(sure.Make(0.01) == doubted.Make(0.01)) << step;
    ASSERT_EQ(sure.checksum(), doubted.checksum()) << step;
  }
}

// In memory, each slot is there once, and a step takes no more.
TEST_P(OptimizerTest, HoldsEachSlotOnce) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's allocator does not tell how much it holds";
#endif
  constexpr uint32_t kSize = 1 << 18;
  const auto bytes = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  Serial serial;
  const Layout layout = ParametersOnly(kSize);
  StepWorld world(layout, absl::nullopt, {SgdOptions()});
  world.Add(Values(kSize, 1));
  world.Make(0.01);
  const size_t before = bytes();
  const OptimizerConfig optimizer = {GetParam().options, {}};
  const Stripes whole(layout.size(), 1);
  const auto director = std::make_unique<StepDirector>(layout, optimizer, whole);
  const auto stripe = std::make_unique<StripeExecutor>(layout, optimizer, whole, 0, serial);
  const Values sum(kSize, 1);
  const Values current(kSize, 1);
  Values next(kSize);
  const auto expect_slots_and = [&](size_t others) {
    size_t slots = 0;
    for (const SlotInfo& slot : SlotsOf(GetParam().options)) slots += slot.needed ? 1 : 0;
    const size_t vectors = (bytes() - before + (1 << 19)) >> 20;  // each takes 1 MiB
    EXPECT_EQ(vectors, slots + others);
  };
  expect_slots_and(3);  // the vectors of this test
  for (int step = 0; step < 3; ++step) {
    director->Load(1, 1);
    stripe->Load(sum);
    MakeOn(*stripe, *director, {Consistency(), {0.01}, nullptr, absl::nullopt},
           {current, absl::MakeSpan(next), nullptr});
    expect_slots_and(3 + 1);  // and the sum, as a journal needs it
  }
}

// Expects that a step which is not finite, in a vector of `size` elements, leaves nothing behind.
void ExpectLeavesNothingBehind(const OptimizerOptions& options, uint32_t size) {
  StepWorld world(ParametersOnly(size), absl::nullopt, {options});
  StepWorld other(ParametersOnly(size), absl::nullopt, {options});
  for (StepWorld* const one : {&world, &other}) {
    one->set_parameters(Numbers(size, 2));
    one->Add(Numbers(size, 1));
    one->Make(0.01);
  }
  Values gradient = Numbers(size, 3);
  gradient[size - 3] = 3e38f;
  world.Add(gradient);
  world.Keep(gradient);
  world.Make(0.01);
  EXPECT_EQ(world.bad(), size - 3);
  for (StepWorld* const one : {&world, &other}) one->Add(Numbers(size, 4));
  EXPECT_TRUE(world.Make(0.01) == other.Make(0.01));
}

TEST_P(OptimizerTest, AStepThatIsNotFiniteLeavesNothingBehind) {
  ExpectLeavesNothingBehind(GetParam().options, 5003);
}

// Vectors of this size are written past the caches.
TEST(OptimizerSlotsTest, AStepThatIsNotFiniteLeavesNothingBehindInALargeVector) {
  for (const OptimizerOptions& options : AllOptimizers()) {
    if (IsOfProgram(options)) continue;
    ExpectLeavesNothingBehind(options, (1 << 21) + 77);
  }
}

TEST_P(OptimizerTest, GivesEachGroupItsOwnLearningRate) {
  const OptimizerOptions& options = GetParam().options;
  if (WorkersStep(options)) return;
  const Layout layout = LayoutOf({{"a", 40}, {"b", 40}, {"c", 40}});
  StepWorld world(layout, absl::nullopt, {options, {{{"b"}, options}}});
  world.set_parameters(Values(120, 1));
  world.Add(Values(120, 1));
  const Values before = world.parameters();
  const absl::Span<const float> made = world.Make(std::vector<double>{0, 0.5});
  EXPECT_THAT(made.subspan(0, 40), Each(1));
  EXPECT_THAT(made.subspan(40, 40), Each(::testing::Lt(1)));
  EXPECT_THAT(made.subspan(80), Each(1));
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerTest, ::testing::ValuesIn(AllCases()),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           return info.param.name;
                         });

// ---- Groups ----

TEST(OptimizerGroupsTest, HaveTheSlotThatAnyOfThemNeeds) {
  SgdOptions momentum;
  momentum.momentum = 0.5;
  EXPECT_TRUE(MakeOptimizer({SgdOptions()}, 3)->slots().empty());
  EXPECT_EQ(MakeOptimizer({SgdOptions(), {{{"b"}, momentum}}}, 3)->slots().size(), 1u);
  AdamOptions amsgrad;
  amsgrad.amsgrad = true;
  EXPECT_EQ(MakeOptimizer({AdamOptions(), {{{"b"}, amsgrad}}}, 3)->slots().size(), 3u);
}

TEST(OptimizerGroupsTest, OfWhichOneHasMomentumMoveAsTheirOptionsSay) {
  SgdOptions momentum;
  momentum.momentum = 0.5;
  const Layout layout = LayoutOf({{"a", 1}, {"mean", 1, RangeKind::kStatistic}, {"b", 1}});
  StepWorld world(layout, absl::nullopt, {SgdOptions(), {{{"b"}, momentum}}});
  world.Add({2, 10, 2});
  EXPECT_THAT(world.Make(), ElementsAre(-2, 10, -2));
  world.Add({2, 12, 2});
  EXPECT_THAT(world.Make(), ElementsAre(-4, 12, -5));
}

// ---- RMSprop ----

// (g, g, g, …) has no variance; what rounding makes of it is sometimes below 0.
TEST(RmsPropTest, StaysFiniteWhereTheVarianceIsRoundedBelowZero) {
  RmsPropOptions options;
  options.centered = true;
  options.alpha = 0.5;
  StepWorld world(ParametersOnly(1000), absl::nullopt, {options});
  const Values gradient = Numbers(1000, 3);
  for (int step = 0; step < 60; ++step) {
    world.Add(gradient);
    world.Make(1e-9);
  }
  EXPECT_THAT(world.parameters(), Each(::testing::Truly([](float p) { return std::isfinite(p); })));
}

}  // namespace
}  // namespace sluice
