// What the operator's calls return, and what they do with other optimizers than SGD. The rest is in
// tests/scripts/operator.txt.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/change_settings.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- A change of the mode ----

// Each step has one gradient, or two. With beta2 = 0 and one gradient the parameters move by
// m / (1 − beta1^t) / |g|.
TEST(SetConsistencyTest, DividesTheMomentumOfAdamByTheWorkersForEachGradientOfAStep) {
  AdamOptions adam;
  adam.beta1 = 0.5;
  adam.beta2 = 0;
  adam.eps = 0;
  for (const uint32_t quorum : {1, 2}) {
    ShardOptions options = Async(quorum);
    options.consistency.divided_momentum = RuleChoice::kOn;
    ShardWorld world(options, ParametersOnly(1), {adam});
    world.Start({"a", "b"});
    for (const float g : {2.0f, 4.0f}) {
      for (uint32_t i = 0; i < quorum; ++i) {
        const uint64_t step = world.shard().Describe().step.value();
        ASSERT_THAT(world.Push("a", step, {g}), IsOk());
      }
    }
    const double beta1 = quorum == 1 ? 0.25 : 0.5;
    const double m = (beta1 * (1 - beta1) * 2 + (1 - beta1) * 4) / (1 - beta1 * beta1);
    const auto after = static_cast<float>(-0.001 - 0.001 * m / 4);
    EXPECT_THAT(world.Parameters(), ElementsAre(::testing::FloatEq(after)));
  }
}

TEST(SetConsistencyTest, DoesNotOverwriteRulesThatTheCallerHasNotSeen) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  const Consistency seen = world.shard().Describe().consistency;
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_THAT(ChangeConsistency(world.shard(), Backup(2, 1).consistency, seen),
              IsOkAndHolds(Step(1)));
  // The first change waits for its boundary.
  EXPECT_THAT(ChangeConsistency(world.shard(), Async(1).consistency, seen),
              HasCode(absl::StatusCode::kAborted, HasSubstr("not those that were expected")));
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  const Consistency now = world.shard().Describe().consistency;
  EXPECT_EQ(now.mode, ConsistencyMode::kBackup);
  EXPECT_THAT(ChangeConsistency(world.shard(), Async(1).consistency, now), IsOkAndHolds(Step(1)));
}

TEST(SetConsistencyTest, IsInTheWelcomeOfThoseWhoJoinLater) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  ASSERT_THAT(ChangeConsistency(world.shard(), Backup(2, 1).consistency), IsOk());
  const absl::StatusOr<Welcome> welcome = world.Join("b");
  EXPECT_EQ(welcome->consistency.mode, ConsistencyMode::kBackup);
  EXPECT_EQ(welcome->consistency.quorum, 2u);
}

TEST(SetConsistencyTest, BeforeTheFirstWorkerItIsThereForIt) {
  ShardWorld world(Sync(1));
  EXPECT_THAT(ChangeConsistency(world.shard(), Async(2).consistency), IsOkAndHolds(Step(0)));
  EXPECT_EQ(world.Join("a")->consistency.mode, ConsistencyMode::kAsync);
}

// ---- SetLearningRate ----

TEST(SetLearningRateTest, ReturnsTheStepFromWhichItHolds) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  EXPECT_THAT(ChangeLearningRate(world.shard(), 0.5), IsOkAndHolds(Step(0)));
  ASSERT_THAT(world.Push("a", 0, {4, 4, 4}), Accepted(0));
  EXPECT_THAT(ChangeLearningRate(world.shard(), 0.25), IsOkAndHolds(Step(1)));
}

TEST(SetLearningRateTest, IsRefusedWhereWorkersTakeTheirOwnSteps) {
  ShardWorld world(Sync(1), ParametersOnly(3), AveragingOptions());
  world.Start({"a"});
  EXPECT_THAT(ChangeLearningRate(world.shard(), 0.5),
              IsError(Reason::kBadArgument, HasSubstr("apply their own optimizers")));
}

// ---- Evict ----

TEST(EvictTest, CancelsThePushThatArrives) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  TestStart start = world.BeginAs(world.NextHeader("a", 0));
  ASSERT_THAT(world.shard().Evict("a"), IsOk());
  EXPECT_EQ(start.state->cancelled, 1);
  EXPECT_THAT(world.Finish(start.Take(), {9, 9, 9}),
              IsError(Reason::kUnknownSession, HasSubstr("session 1")));
  EXPECT_THAT(world.Push("b", 0, {2, 2, 2}), Applied(1));
  EXPECT_EQ(start.state->cancelled, 1);
  EXPECT_EQ(world.Counters(), "2 received: 1 accepted, 1 aborted");
}

}  // namespace
}  // namespace sluice
