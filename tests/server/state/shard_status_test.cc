#include "server/state/shard_status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(ShardStatusTest, MeanStepTimeIsZeroBeforeTheFirstStep) {
  ShardStatus state;
  EXPECT_EQ(state.MeanStepTime(), absl::ZeroDuration());
  state.times.initialized = kStart;
  EXPECT_EQ(state.MeanStepTime(), absl::ZeroDuration());
}

TEST(ShardStatusTest, MeanStepTimeIsThatBetweenTheStepsOfThisProcess) {
  ShardStatus state;
  state.now = kStart + absl::Hours(1);
  state.step = Step(104);
  state.times.initialized = kStart;
  state.times.first_step = state.times.last_step = kStart + absl::Seconds(60);
  state.times.steps = 1;
  EXPECT_EQ(state.MeanStepTime(), absl::Seconds(60));
  state.times.last_step = kStart + absl::Seconds(66);
  state.times.steps = 5;
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

}  // namespace
}  // namespace sluice
