// Rows that a step does not touch stay as they are, also with optimizers that move a dense vector
// in each step. A row that is touched in every step is as in a dense vector.

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/optimizers/optimizer.h"
#include "tests/server/tables/table_world.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

// Optimizers with slots, with their options other than the defaults.
std::vector<OptimizerOptions> WithSlots() {
  SgdOptions momentum;
  momentum.momentum = 0.9;
  momentum.dampening = 0.5;
  momentum.weight_decay = 0.01;
  SgdOptions nesterov;
  nesterov.momentum = 0.9;
  nesterov.nesterov = true;
  AdamOptions amsgrad;
  amsgrad.amsgrad = true;
  AdamWOptions adamw;
  AdagradOptions adagrad;
  adagrad.initial_accumulator_value = 2;
  RmsPropOptions centered;
  centered.centered = true;
  RmsPropOptions both = centered;
  both.momentum = 0.5;
  return {momentum, nesterov,         AdamOptions(), amsgrad, adamw,
          adagrad,  RmsPropOptions(), centered,      both};
}

float GradientAt(int step, size_t i) { return std::sin(static_cast<float>(step * 7 + i + 1)); }

TEST(LazyRulesTest, ARowThatEachStepTouchesIsAsInADenseVector) {
  constexpr size_t kWidth = 19;
  for (const OptimizerOptions& options : WithSlots()) {
    SCOPED_TRACE(OptimizerName(options));
    TableWorld world({TableOf("items", kWidth)}, {{options}});
    const auto dense = MakeOptimizer({options}, kWidth);
    Values row(kWidth);
    for (int step = 1; step <= 6; ++step) {
      Values gradient(kWidth);
      for (size_t i = 0; i < kWidth; ++i) gradient[i] = GradientAt(step, i);
      world.Push({{0, {4}}}, gradient);
      world.MakeStep(2);
      OptimizerStep of_dense;
      of_dense.number = step;
      of_dense.divisor = 2;
      of_dense.learning_rates = {1};
      Values next(kWidth);
      dense->Begin(of_dense);
      dense->Apply({0, 0, gradient, row, absl::MakeSpan(next)});
      row = next;
      ASSERT_EQ(world.Row(0, 4), row) << "step " << step;
    }
  }
}

TEST(LazyRulesTest, RowsThatAStepDoesNotTouchStayAsTheyAre) {
  for (const OptimizerOptions& options : WithSlots()) {
    SCOPED_TRACE(OptimizerName(options));
    TableWorld world({TableOf("items", 1)}, {{options}});
    world.Push({{0, {1, 2}}}, {1, 1});
    world.MakeStep();
    const Values before = world.Row(0, 1);
    world.Push({{0, {2}}}, {1});
    world.MakeStep();
    EXPECT_EQ(world.Row(0, 1), before);
  }
}

TEST(LazyRulesTest, MomentumOfARowBeginsAtItsFirstTouchAndWaitsForTheNext) {
  SgdOptions sgd;
  sgd.momentum = 0.5;
  sgd.dampening = 0.25;
  TableWorld world({TableOf("items", 1)}, {{sgd}});
  world.Push({{0, {1}}}, {1});
  world.MakeStep();
  world.Push({{0, {2}}}, {8});
  world.MakeStep();  // the second step of the optimizer, the first of row 2: no dampening
  EXPECT_THAT(world.Row(0, 2), ElementsAre(-8));
  world.Push({{0, {1}}}, {4});
  world.MakeStep();  // momentum is 0.5 · 1 + 0.75 · 4
  EXPECT_THAT(world.Row(0, 1), ElementsAre(-1 - 3.5f));
}

TEST(LazyRulesTest, TheBiasCorrectionOfAdamCountsTheStepsOfTheOptimizer) {
  AdamOptions adam;
  TableWorld world({TableOf("items", 1)}, {{adam}});
  world.Push({{0, {1}}}, {1});
  world.MakeStep();
  world.Push({{0, {1}}}, {1});
  world.MakeStep();
  world.Push({{0, {2}}}, {2});
  world.MakeStep();
  // The moments of one gradient, with the correction of step 3.
  const double m = 0.1 * 2 / (1 - std::pow(0.9, 3));
  const double v = 0.001 * 4 / (1 - std::pow(0.999, 3));
  EXPECT_THAT(world.Row(0, 2),
              ElementsAre(FloatNear(static_cast<float>(-m / (std::sqrt(v) + 1e-8)), 1e-6f)));
}

TEST(LazyRulesTest, StepsWithoutRowsCountForTheBiasCorrection) {
  TableWorld empty({TableOf("items", 1)}, {{AdamOptions()}});
  TableWorld other({TableOf("items", 1)}, {{AdamOptions()}});
  empty.MakeStep();
  other.Push({{0, {9}}}, {1});
  other.MakeStep();
  for (TableWorld* world : {&empty, &other}) {
    world->Push({{0, {1}}}, {1});
    world->MakeStep();
  }
  EXPECT_EQ(empty.Row(0, 1), other.Row(0, 1));
}

}  // namespace
}  // namespace sluice
