#include "server/state/shard_status.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(ShardStatusTest, MeanStepTimeIsZeroBeforeTheFirstStep) {
  ShardStatus state;
  EXPECT_EQ(state.MeanStepTime(), absl::ZeroDuration());
  state.times.initialized = kStart;
  EXPECT_EQ(state.MeanStepTime(), absl::ZeroDuration());
}

TEST(ShardStatusTest, MeanStepTimeRunsFromInitialisationToTheLatestStep) {
  ShardStatus state;
  state.times.initialized = kStart;
  state.times.last_step = kStart + absl::Seconds(6);
  state.now = kStart + absl::Hours(1);
  state.step = Step(4);
  EXPECT_EQ(state.MeanStepTime(), absl::Milliseconds(1500));
}

TEST(ShardStatusTest, WaitsForWorkersUntilAllHaveJoinedAndThereAreParameters) {
  ShardWorld world(Sync(2));
  EXPECT_EQ(world.shard().Describe().phase, Phase::kWaitingForWorkers);
  ASSERT_TRUE(world.Join("a").ok());
  ASSERT_TRUE(world.Initialize({0, 0, 0}).ok());
  EXPECT_EQ(world.shard().Describe().phase, Phase::kWaitingForWorkers);
  ASSERT_TRUE(world.Join("b").ok());
  EXPECT_EQ(world.shard().Describe().phase, Phase::kTraining);
}

TEST(ShardStatusTest, WaitsForParametersAfterAllHaveJoined) {
  ShardWorld world(Sync(1));
  ASSERT_TRUE(world.Join("a").ok());
  EXPECT_EQ(world.shard().Describe().phase, Phase::kWaitingForWorkers);
  ASSERT_TRUE(world.Initialize({0, 0, 0}).ok());
  EXPECT_EQ(world.shard().Describe().phase, Phase::kTraining);
}

TEST(ShardStatusTest, IsFinishedOnceEveryWorkerHasGoneAndDrainingOnceToldTo) {
  ShardWorld world(Sync(1));
  ASSERT_TRUE(world.Join("a").ok());
  ASSERT_TRUE(world.Initialize({0, 0, 0}).ok());
  ASSERT_TRUE(world.Leave("a").ok());
  EXPECT_EQ(world.shard().Describe().phase, Phase::kFinished);
  world.shard().Drain();
  EXPECT_EQ(world.shard().Describe().phase, Phase::kDraining);
}

// ---- Guards ----

TEST(GuardsTest, AreOffByDefault) {
  EXPECT_THAT(Guards().Validate(), IsOk());
  EXPECT_FALSE(Guards().skip_not_finite);
}

TEST(GuardsTest, TakeNormsAboveZeroOnly) {
  for (absl::optional<double> Guards::*const norm : {&Guards::clip_norm, &Guards::max_push_norm}) {
    Guards guards;
    guards.*norm = 1e-9;
    EXPECT_THAT(guards.Validate(), IsOk());
    for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
      guards.*norm = bad;
      EXPECT_THAT(guards.Validate(),
                  IsError(Reason::kBadArgument, HasSubstr(absl::StrCat("_norm is ", bad))));
    }
  }
}

TEST(GuardsTest, NameTheNormThatIsWrong) {
  Guards guards;
  guards.max_push_norm = 0;
  EXPECT_THAT(guards.Validate(), IsError(Reason::kBadArgument, HasSubstr("max_push_norm is 0")));
  guards.clip_norm = 0;
  EXPECT_THAT(guards.Validate(), IsError(Reason::kBadArgument, HasSubstr("clip_norm is 0")));
}

}  // namespace
}  // namespace sluice
