#include "common/protocol/learning_rate_schedule.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

LearningRateSchedule Warmup(uint64_t steps) {
  LearningRateSchedule schedule;
  schedule.warmup_steps = steps;
  return schedule;
}

LearningRateSchedule Steps(uint64_t step_size, double gamma) {
  LearningRateSchedule schedule;
  schedule.kind = ScheduleKind::kStep;
  schedule.step_size = step_size;
  schedule.gamma = gamma;
  return schedule;
}

LearningRateSchedule Cosine(uint64_t total_steps, double floor = 0) {
  LearningRateSchedule schedule;
  schedule.kind = ScheduleKind::kCosine;
  schedule.total_steps = total_steps;
  schedule.floor = floor;
  return schedule;
}

std::vector<double> FirstFactors(const LearningRateSchedule& schedule, uint64_t count) {
  std::vector<double> factors;
  for (uint64_t step = 0; step < count; ++step) factors.push_back(schedule.FactorAt(Step(step)));
  return factors;
}

auto Near(double value) { return DoubleNear(value, 1e-15); }

// ---- Factors ----

TEST(LearningRateScheduleTest, IsConstantByDefault) {
  EXPECT_THAT(FirstFactors(LearningRateSchedule(), 3), ElementsAre(1, 1, 1));
  EXPECT_EQ(LearningRateSchedule().FactorAt(Step(1000000000)), 1);
}

TEST(LearningRateScheduleTest, WarmsUpInALineThatEndsAtTheWholeRate) {
  EXPECT_THAT(FirstFactors(Warmup(4), 6), ElementsAre(0.25, 0.5, 0.75, 1, 1, 1));
  EXPECT_THAT(FirstFactors(Warmup(1), 2), ElementsAre(1, 1));
}

TEST(LearningRateScheduleTest, DropsByGammaAfterEveryStepSize) {
  EXPECT_THAT(FirstFactors(Steps(2, 0.5), 7), ElementsAre(1, 1, 0.5, 0.5, 0.25, 0.25, 0.125));
  EXPECT_THAT(FirstFactors(Steps(1, 2), 4), ElementsAre(1, 2, 4, 8));
}

TEST(LearningRateScheduleTest, CountsStepsFromTheEndOfTheWarmUp) {
  LearningRateSchedule schedule = Steps(2, 0.5);
  schedule.warmup_steps = 2;
  EXPECT_THAT(FirstFactors(schedule, 6), ElementsAre(0.5, 1, 1, 1, 0.5, 0.5));
}

TEST(LearningRateScheduleTest, FollowsHalfACosineAndStaysAtItsEnd) {
  const double root = std::sqrt(0.5);
  EXPECT_THAT(FirstFactors(Cosine(4), 6), ElementsAre(1, Near((1 + root) / 2), Near(0.5),
                                                      Near((1 - root) / 2), Near(0), Near(0)));
  EXPECT_NEAR(Cosine(4).FactorAt(Step(1000000)), 0, 1e-15);
}

TEST(LearningRateScheduleTest, EndsItsCosineAtTheFloor) {
  EXPECT_THAT(FirstFactors(Cosine(2, 0.2), 4), ElementsAre(1, Near(0.6), Near(0.2), Near(0.2)));
  EXPECT_THAT(FirstFactors(Cosine(2, 1), 4), ElementsAre(1, 1, 1, 1));
}

TEST(LearningRateScheduleTest, HasTheWarmUpInTheCosinesTotal) {
  LearningRateSchedule schedule = Cosine(4);
  schedule.warmup_steps = 2;
  EXPECT_THAT(FirstFactors(schedule, 6), ElementsAre(0.5, 1, 1, Near(0.5), Near(0), Near(0)));
}

TEST(LearningRateScheduleTest, KnowsWhetherItIsConstant) {
  EXPECT_TRUE(LearningRateSchedule().is_constant());
  EXPECT_FALSE(Warmup(1).is_constant());
  EXPECT_FALSE(Steps(1, 1).is_constant());
  EXPECT_FALSE(Cosine(1).is_constant());
}

// ---- Domains ----

auto Refused(const std::string& field, const std::string& expected) {
  return IsError(Reason::kBadArgument, AllOf(HasSubstr(field), HasSubstr(expected)));
}

TEST(LearningRateScheduleTest, AcceptsWhatIsInItsDomain) {
  for (const LearningRateSchedule& schedule :
       {LearningRateSchedule(), Warmup(1000), Steps(1, 1e-9), Steps(5, 3), Cosine(1), Cosine(9, 0),
        Cosine(9, 1)}) {
    EXPECT_THAT(schedule.Validate(), IsOk());
  }
}

TEST(LearningRateScheduleTest, RefusesStepsOfNoSize) {
  EXPECT_THAT(Steps(0, 0.1).Validate(), Refused("step_size 0", "at least 1"));
}

TEST(LearningRateScheduleTest, RefusesAGammaThatIsNotFiniteAndAboveZero) {
  for (const double gamma : {0.0, -0.5, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(Steps(1, gamma).Validate(),
                Refused(absl::StrCat("gamma ", gamma), "finite number above 0"));
  }
}

TEST(LearningRateScheduleTest, RefusesACosineThatEndsWithTheWarmUp) {
  EXPECT_THAT(Cosine(0).Validate(), Refused("total_steps 0", "more than the 0"));
  LearningRateSchedule schedule = Cosine(7);
  schedule.warmup_steps = 7;
  EXPECT_THAT(schedule.Validate(), Refused("total_steps 7", "more than the 7 of the warm-up"));
  schedule.warmup_steps = 6;
  EXPECT_THAT(schedule.Validate(), IsOk());
}

TEST(LearningRateScheduleTest, RefusesAFloorOutsideZeroToOne) {
  for (const double floor : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(Cosine(5, floor).Validate(), Refused(absl::StrCat("floor ", floor), "0 to 1"));
  }
}

// ---- Names ----

TEST(ScheduleKindTest, EveryNameCanBeReadBack) {
  const char* const names[] = {"constant", "step", "cosine"};
  for (int i = 0; i < 3; ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    EXPECT_EQ(ScheduleKindName(kind), names[i]);
    auto parsed = static_cast<ScheduleKind>((i + 1) % 3);
    EXPECT_THAT(ParseScheduleKind(names[i], &parsed), IsOk());
    EXPECT_EQ(parsed, kind);
  }
}

TEST(ScheduleKindTest, RefusesAnUnknownNameAndListsTheKnown) {
  for (const char* name : {"linear", "", "Step", "cosine "}) {
    ScheduleKind kind = ScheduleKind::kCosine;
    EXPECT_THAT(
        ParseScheduleKind(name, &kind),
        Refused(absl::StrCat("schedule \"", name, "\" is unknown"), "constant, step or cosine"));
    EXPECT_EQ(kind, ScheduleKind::kCosine);
  }
}

}  // namespace
}  // namespace sluice
