// The rules of TensorFlow's ConditionalAccumulator (C) and SyncReplicasOptimizer (R), by their
// numbers in the design notes: the shard does the same, or the test names the difference. A take(n)
// is a step of quorum n, and is waited for with a pull.

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The accumulator's own gate: staleness 0.
ShardOptions Take(uint32_t count) { return Async(count, 0); }

// A world of one scalar, trained by "w".
class ConditionalAccumulatorTest : public ::testing::Test {
 protected:
  ShardWorld& Accumulator(uint32_t take) {
    world_ = std::make_unique<ShardWorld>(Take(take), ParametersOnly(1));
    world_->Start({"w"});
    return *world_;
  }

  std::unique_ptr<ShardWorld> world_;
};

TEST_F(ConditionalAccumulatorTest, C2C3AcceptsTheCurrentStepAndDropsOlderOnes) {
  ShardWorld& world = Accumulator(1);
  ASSERT_THAT(world.Push("w", 0, {1}), Applied(1));
  EXPECT_THAT(world.Push("w", 0, {9}), Stale(1, 1));  // ours: told, not silent
  EXPECT_THAT(world.Push("w", 1, {1}), Applied(2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2));
}

TEST_F(ConditionalAccumulatorTest, C2DifferenceRefusesAFutureStep) {
  EXPECT_THAT(Accumulator(1).Push("w", 1, {1}), IsError(Reason::kFutureStep, HasSubstr("step 1")));
}

TEST_F(ConditionalAccumulatorTest, C4JudgesStalenessBeforeTheShape) {
  ShardWorld& world = Accumulator(1);
  ASSERT_THAT(world.Push("w", 0, {1}), Applied(1));
  EXPECT_THAT(world.Push("w", 0, {1, 2, 3}), Stale(1, 1));
}

TEST_F(ConditionalAccumulatorTest, C5C10SumsAndDividesByWhatItSummed) {
  ShardWorld& world = Accumulator(3);
  EXPECT_THAT(world.Push("w", 0, {10}), Accepted(0));
  EXPECT_THAT(world.Push("w", 0, {20}), Accepted(0));
  EXPECT_THAT(world.Push("w", 0, {60}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-30));
}

TEST_F(ConditionalAccumulatorTest, C6AGradientOfTheWrongShapeChangesNothing) {
  ShardWorld& world = Accumulator(2);
  ASSERT_THAT(world.Push("w", 0, {10}), Accepted(0));
  EXPECT_THAT(world.Push("w", 0, {1, 2}), IsError(Reason::kBadChunk, HasSubstr("outside")));
  EXPECT_EQ(world.shard().Describe().accumulated, 1u);
  ASSERT_THAT(world.Push("w", 0, {20}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-15));
  EXPECT_EQ(world.Books(), "3 received: 2 accepted, 1 rejected");
}

TEST_F(ConditionalAccumulatorTest, C9AStepWaitsForItsThirdGradient) {
  ShardWorld& world = Accumulator(3);
  const TestPull taken = world.Pull(1);
  for (uint32_t count = 1; count <= 2; ++count) {
    EXPECT_THAT(world.Push("w", 0, {3}), Accepted(0));
    EXPECT_FALSE(taken.answered());
    EXPECT_EQ(world.shard().Describe().accumulated, count);  // C17
  }
  EXPECT_THAT(world.Push("w", 0, {6}), Applied(1));
  EXPECT_TRUE(taken.answered());
  EXPECT_THAT(taken.values(), ElementsAre(-4));
  EXPECT_EQ(world.shard().Describe().accumulated, 0u);
}

TEST_F(ConditionalAccumulatorTest, C11TheNextGradientOverwritesTheSum) {
  ShardWorld& world = Accumulator(1);
  ASSERT_THAT(world.Push("w", 0, {100}), Applied(1));
  ASSERT_THAT(world.Push("w", 1, {1}), Applied(2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-101));
}

TEST_F(ConditionalAccumulatorTest, C12AnswersThoseWhoWaitInTheOrderTheyCame) {
  ShardWorld& world = Accumulator(1);
  std::vector<int> answered;
  for (const int pull : {1, 2, 3}) {
    PullRequest request;
    request.session = world.session("w");
    request.min_step = Step(1);
    world.shard().Pull(request, [&answered, pull](const absl::StatusOr<PullResult>&) {
      answered.push_back(pull);
    });
  }
  ASSERT_THAT(world.Push("w", 0, {1}), Applied(1));
  EXPECT_THAT(answered, ElementsAre(1, 2, 3));
}

TEST_F(ConditionalAccumulatorTest, C13C14OneGradientMakesOneStepWhoeverStillWaits) {
  ShardWorld& world = Accumulator(1);
  TestPull first = world.Pull(1);
  const TestPull second = world.Pull(2);
  EXPECT_TRUE(first.Cancel());
  ASSERT_THAT(world.Push("w", 0, {1}), Applied(1));
  EXPECT_FALSE(first.answered());
  EXPECT_FALSE(second.answered());
  ASSERT_THAT(world.Push("w", 1, {1}), Applied(2));
  EXPECT_TRUE(second.answered());
}

TEST_F(ConditionalAccumulatorTest, C18DifferenceCountsARepeatedPushOnce) {
  ShardWorld& world = Accumulator(2);
  ASSERT_THAT(world.Push("w", 0, {10}), Accepted(0));
  EXPECT_THAT(world.Repeat("w", 0, {10}), Repeated(Disposition::kAccepted, 0));
  EXPECT_EQ(world.shard().Describe().accumulated, 1u);
}

// apply 10, 20 at step 0: the mean is 15; again at step 1 the same.
TEST_F(ConditionalAccumulatorTest, C23MakesFifteenOfTenAndTwentyStepAfterStep) {
  ShardWorld& world = Accumulator(2);
  for (uint64_t step = 0; step < 2; ++step) {
    const float before = world.Parameters()[0];
    EXPECT_THAT(world.Push("w", step, {10}), Accepted(step));
    EXPECT_THAT(world.Push("w", step, {20}), Applied(step + 1));
    EXPECT_THAT(world.Parameters(), ElementsAre(before - 15));
  }
  EXPECT_EQ(world.Books(), "4 received: 4 accepted");
}

// At server step s, gradients of local steps 0 to 4 with their own number for a value: x < s are
// dropped, x = s is taken, and, ours, x > s are refused, which TensorFlow takes into the mean.
TEST_F(ConditionalAccumulatorTest, C23TakesOfFiveLocalStepsTheCurrentOne) {
  for (uint64_t current = 0; current < 5; ++current) {
    ShardWorld& world = Accumulator(1);
    for (uint64_t step = 0; step < current; ++step) {
      ASSERT_THAT(world.Push("w", step, {0}), Applied(step + 1));
    }
    for (uint64_t local = 0; local < 5; ++local) {
      if (local == current) continue;
      const auto outcome = world.Push("w", local, {static_cast<float>(local)});
      if (local < current) {
        EXPECT_THAT(outcome, Stale(current, current - local));
      } else {
        EXPECT_THAT(outcome, IsError(Reason::kFutureStep, HasSubstr("the server is at step")));
      }
    }
    EXPECT_THAT(world.Push("w", current, {static_cast<float>(current)}), Applied(current + 1));
    EXPECT_THAT(world.Parameters(), ElementsAre(-static_cast<float>(current)));
  }
}

TEST_F(ConditionalAccumulatorTest, C23TenWaitingTakesGetOneValueEach) {
  ShardWorld& world = Accumulator(1);
  std::vector<TestPull> takes;
  for (uint64_t step = 1; step <= 10; ++step) takes.push_back(world.Pull(step));
  for (uint64_t step = 0; step < 10; ++step) {
    ASSERT_THAT(world.Push("w", step, {static_cast<float>(step)}), Applied(step + 1));
  }
  float sum = 0;
  for (uint64_t step = 0; step < 10; ++step) {
    sum += static_cast<float>(step);
    EXPECT_EQ(takes[step].step(), step + 1);
    EXPECT_THAT(takes[step].values(), ElementsAre(-sum));
  }
}

// ---- SyncReplicasOptimizer ----

TEST(SyncReplicasTest, R1TheSlowestOfThreeIsABackupWhenTwoMakeAStep) {
  ShardWorld world(Take(2), ParametersOnly(1));
  world.Start({"a", "b", "backup"});
  EXPECT_THAT(world.Push("a", 0, {10}), Accepted(0));
  EXPECT_THAT(world.Push("b", 0, {20}), Applied(1));
  EXPECT_THAT(world.Push("backup", 0, {90}), Stale(1, 1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-15));
  EXPECT_EQ(world.Books(), "3 received: 2 accepted, 1 stale");
}

TEST(SyncReplicasTest, R1FewerWorkersThanTheQuorumGiveSeveralBatchesEach) {
  ShardWorld world(Take(4), ParametersOnly(1));
  world.Start({"a", "b"});
  EXPECT_THAT(world.Push("a", 0, {1}), Accepted(0));
  EXPECT_THAT(world.Push("a", 0, {2}), Accepted(0));
  EXPECT_THAT(world.Push("b", 0, {3}), Accepted(0));
  EXPECT_THAT(world.Push("a", 0, {6}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3));
}

TEST(SyncReplicasTest, R4EachWorkerWaitsForTheNewStepAfterItsPush) {
  ShardWorld world(Sync(2), ParametersOnly(1));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2}), Accepted(0));
  const TestPull of_a = world.PullAs(world.session("a"), 1);
  EXPECT_FALSE(of_a.answered());
  ASSERT_THAT(world.Push("b", 0, {4}), Applied(1));
  const TestPull of_b = world.PullAs(world.session("b"), 1);
  EXPECT_EQ(of_a.step(), 1u);
  EXPECT_EQ(of_b.step(), 1u);
  EXPECT_THAT(of_b.values(), ElementsAre(-3));
}

// TensorFlow hangs when a token's holder dies, or fewer workers are left than the step needs.
TEST(SyncReplicasTest, R12DifferenceNoStepWaitsForWorkersThatAreGone) {
  ShardWorld world(Sync(3), ParametersOnly(1));
  world.Start({"a", "b", "c"});
  ASSERT_THAT(world.Push("a", 0, {2}), Accepted(0));
  world.Lose("b");
  ASSERT_THAT(world.Leave("c"), IsOk());
  world.Pass(absl::Seconds(10));
  EXPECT_EQ(world.step(), 1u);
  EXPECT_THAT(world.Push("a", 1, {2}), Applied(2));
}

}  // namespace
}  // namespace sluice
