// The operator's calls while a job runs.

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ---- SetConsistency ----

TEST(SetConsistencyTest, HoldsAtOnceAtAStepBoundary) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  EXPECT_THAT(world.shard().SetConsistency(Async(1).consistency), IsOkAndHolds(Step(0)));
  EXPECT_EQ(world.shard().Describe().consistency.mode, ConsistencyMode::kAsync);
  for (const char* name : {"a", "b", "owner"}) {
    EXPECT_THAT(world.Heard(name), ElementsAre("policy async 0"));
  }
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(2, 1));
}

TEST(SetConsistencyTest, LeavesTheStepUnderWayItsTerms) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_THAT(world.shard().SetConsistency(Async(1).consistency), IsOkAndHolds(Step(1)));
  world.Pass(absl::Seconds(1));
  EXPECT_EQ(world.step(), 0u);
  EXPECT_EQ(world.shard().Describe().consistency.mode, ConsistencyMode::kSync);
  EXPECT_THAT(world.Heard("a"), IsEmpty());
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Heard("a"), ElementsAre("policy async 1"));
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(2, 1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-4, -4, -4));
}

TEST(SetConsistencyTest, ChoosesTheRulesForStaleGradients) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  EXPECT_FALSE(world.shard().Describe().staleness_rules.any());
  Consistency async = Async(1).consistency;
  async.gap_aware = async.ordered_momentum = RuleChoice::kAuto;
  ASSERT_THAT(world.shard().SetConsistency(async), IsOk());
  EXPECT_TRUE(world.shard().Describe().staleness_rules.gap_aware);
  EXPECT_THAT(world.Push("a", 0, {2, 0, 0}), Applied(1));
  EXPECT_THAT(world.Push("a", 1, {2, 0, 0}), Applied(2));
  EXPECT_THAT(world.Push("b", 0, {9, 0, 0}), Applied(3, 2));  // two mean steps: divided by 3
  EXPECT_THAT(world.Parameters(), ElementsAre(-7, 0, 0));
}

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

TEST(SetConsistencyTest, RefusesARuleThatDoesNotFitTheOptimizer) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  Consistency async = Async(1).consistency;
  async.ordered_momentum = RuleChoice::kOn;
  EXPECT_THAT(world.shard().SetConsistency(async),
              IsError(Reason::kBadOptimizer, HasSubstr("it needs SGD with a momentum")));
  EXPECT_EQ(world.shard().Describe().consistency.mode, ConsistencyMode::kSync);
}

// It was told to begin with a step that nobody is left to make.
TEST(SetConsistencyTest, AWorkerThatWaitsForTheNextStepGetsItWhenTheOthersHaveGone) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  auto push = world.Begin("a", 0);
  EXPECT_EQ(world.Join("b")->step, Step(1));
  ASSERT_THAT(world.shard().SetConsistency(Async(2).consistency), IsOk());
  const TestPull pull = world.Pull(1);
  world.shard().AbandonPush(std::move(push), Abandoned::kAborted);
  ASSERT_THAT(world.Leave("a"), IsOk());
  ASSERT_TRUE(pull.answered());
  EXPECT_EQ(pull.step(), 1u);
}

TEST(SetConsistencyTest, RefusesWhatIsNotValidAndChangesNothing) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  Consistency consistency;
  consistency.quorum = 3;
  EXPECT_THAT(world.shard().SetConsistency(consistency),
              IsError(Reason::kBadArgument, HasSubstr("quorum is 3 in sync mode")));
  EXPECT_THAT(world.Heard("a"), IsEmpty());
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
}

TEST(SetConsistencyTest, DoesNotOverwriteRulesThatTheCallerHasNotSeen) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  const Consistency seen = world.shard().Describe().consistency;
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_THAT(world.shard().SetConsistency(Backup(2, 1).consistency, seen), IsOkAndHolds(Step(1)));
  // The first change waits for its boundary.
  EXPECT_THAT(world.shard().SetConsistency(Async(1).consistency, seen),
              HasCode(absl::StatusCode::kAborted, HasSubstr("not those that were expected")));
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  const Consistency now = world.shard().Describe().consistency;
  EXPECT_EQ(now.mode, ConsistencyMode::kBackup);
  EXPECT_THAT(world.shard().SetConsistency(Async(1).consistency, now), IsOkAndHolds(Step(1)));
}

TEST(SetConsistencyTest, IsInTheWelcomeOfThoseWhoJoinLater) {
  ShardWorld world(Sync(1));
  world.Start({"a"});
  ASSERT_THAT(world.shard().SetConsistency(Backup(2, 1).consistency), IsOk());
  const absl::StatusOr<Welcome> welcome = world.Join("b");
  EXPECT_EQ(welcome->consistency.mode, ConsistencyMode::kBackup);
  EXPECT_EQ(welcome->consistency.quorum, 2u);
}

TEST(SetConsistencyTest, BeforeTheFirstWorkerItIsThereForIt) {
  ShardWorld world(Sync(1));
  EXPECT_THAT(world.shard().SetConsistency(Async(2).consistency), IsOkAndHolds(Step(0)));
  EXPECT_EQ(world.Join("a")->consistency.mode, ConsistencyMode::kAsync);
}

TEST(SetConsistencyTest, InSspPushesAreCountedFromTheChangeOn) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  for (uint64_t step = 0; step < 5; ++step) {
    ASSERT_THAT(world.Push("a", step, {1, 1, 1}), Applied(step + 1));
  }
  ASSERT_THAT(world.shard().SetConsistency(Ssp(0, 2).consistency), IsOk());
  EXPECT_THAT(world.Push("a", 5, {1, 1, 1}), Applied(6));
  EXPECT_THAT(world.Push("a", 6, {1, 1, 1}),
              IsError(Reason::kAheadOfOthers, HasSubstr("a has made 1 pushes")));
}

TEST(SetConsistencyTest, LetsThoseGoOnWhomTheNewModeDoesNotHold) {
  ShardWorld world(Ssp(0, 2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  const TestPull ahead = world.GoOn("a");
  EXPECT_FALSE(ahead.answered());
  ASSERT_THAT(world.shard().SetConsistency(Async(1).consistency), IsOk());
  EXPECT_TRUE(ahead.answered());
}

TEST(SetConsistencyTest, JudgesAPushOnItsWayInByTheNewTerms) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  auto arriving = world.Begin("b", 0);
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.shard().SetConsistency(Sync(2).consistency), IsOkAndHolds(Step(1)));
  EXPECT_THAT(world.Finish(std::move(arriving), {9, 9, 9}), Stale(1, 1));
  EXPECT_THAT(world.Push("a", 1, {1, 1, 1}), Accepted(1));
}

// ---- SetLearningRate ----

TEST(SetLearningRateTest, HoldsFromTheNextStepBoundaryOn) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  EXPECT_THAT(world.shard().SetLearningRate(0.5), IsOkAndHolds(Step(0)));
  EXPECT_EQ(world.shard().Describe().learning_rate, 0.5);
  ASSERT_THAT(world.Push("a", 0, {4, 4, 4}), Accepted(0));
  EXPECT_THAT(world.shard().SetLearningRate(0.25), IsOkAndHolds(Step(1)));
  EXPECT_EQ(world.shard().Describe().learning_rate, 0.5);
  ASSERT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2, -2, -2));
  EXPECT_EQ(world.shard().Describe().learning_rate, 0.25);
  ASSERT_THAT(world.Push("a", 1, {4, 4, 4}), Accepted(1));
  ASSERT_THAT(world.Push("b", 1, {4, 4, 4}), Applied(2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
}

TEST(SetLearningRateTest, IsScheduledAsTheOptimizersWas) {
  ShardOptions options = Async(1);
  options.schedule.warmup_steps = 2;
  ShardWorld world(options);
  world.Start({"a"});
  ASSERT_THAT(world.shard().SetLearningRate(8), IsOk());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-4, -4, -4));
}

TEST(SetLearningRateTest, RefusesWhatIsOutOfItsDomain) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  EXPECT_THAT(world.shard().SetLearningRate(-1),
              IsError(Reason::kBadArgument, HasSubstr("learning rate is -1")));
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-1, -1, -1));
}

TEST(SetLearningRateTest, IsRefusedWhereWorkersTakeTheirOwnSteps) {
  ShardWorld world(Sync(1), ParametersOnly(3), AveragingOptions());
  world.Start({"a"});
  EXPECT_THAT(world.shard().SetLearningRate(0.5),
              IsError(Reason::kBadArgument, HasSubstr("apply their own optimizers")));
}

// ---- Evict ----

TEST(EvictTest, EndsTheSessionAndKeepsItsProcessOut) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  const TestPull pull = world.PullAs(world.session("a"), 1);
  EXPECT_THAT(world.shard().Evict("a"), IsOk());
  EXPECT_THAT(world.Heard("a"), ElementsAre("evicted 0"));
  EXPECT_THAT(pull.result(), IsError(Reason::kUnknownSession, HasSubstr("session 1")));
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), IsError(Reason::kUnknownSession, HasSubstr("ended")));
  EXPECT_THAT(world.Join("a"), IsError(Reason::kEvicted, HasSubstr("the server's operator")));
  EXPECT_THAT(world.Restart("a"), IsOk());
  EXPECT_EQ(world.shard().Describe().workers, 2u);
}

TEST(EvictTest, LetsTheStepThatWaitedGoOn) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("b", 0, {2, 2, 2}), Accepted(0));
  const TestPull pull = world.GoOn("b");
  ASSERT_THAT(world.shard().Evict("a"), IsOk());
  EXPECT_EQ(pull.step(), 1u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-2, -2, -2));
}

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

TEST(EvictTest, IsOfSomeoneWhoTakesPart) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  EXPECT_THAT(world.shard().Evict("c"), IsError(Reason::kNotFound, HasSubstr("no worker \"c\"")));
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_THAT(world.shard().Evict("a"), IsError(Reason::kNotFound, HasSubstr("no worker \"a\"")));
}

TEST(EvictTest, OfTheLastWorkerEndsTraining) {
  ShardWorld world(Async(2));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(world.shard().Evict("a"), IsOk());
  EXPECT_THAT(world.Heard("owner"), ElementsAre("finished 1", "deserted 1"));
}

}  // namespace
}  // namespace sluice
