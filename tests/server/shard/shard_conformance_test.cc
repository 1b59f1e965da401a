// Compares the server with TensorFlow's ConditionalAccumulator (rules C) and SyncReplicasOptimizer
// (rules R). README.md lists the rules by number. Where Sluice differs on purpose, the test's name
// says Difference and the test asserts what Sluice does. Each test runs in process, over gRPC, and
// over gRPC with tensors in shared memory.
//
// A take(n) is a step of quorum n in bounded mode with max_staleness 0, which is the accumulator's
// gate; a pull waits for it. The optimizer is SGD with learning rate 1 and the parameters start at
// 0, so a step subtracts the reduced gradient.

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/conformance_world.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

ShardOptions TakeOf(uint32_t count) { return Bounded(count, 0); }

auto Takes(uint64_t step, const Values& values) {
  return IsOkAndHolds(
      AllOf(Field("step", &Taken::step, step), Field("values", &Taken::values, values)));
}

class ConformanceTest : public ::testing::TestWithParam<MakeConformanceWorld> {
 protected:
  // The world of the test: a scalar, unless `layout` says otherwise.
  ConformanceWorld& World(const ShardOptions& options, const Layout& layout = ParametersOnly(1)) {
    world_ = GetParam()(options, layout);
    return *world_;
  }

  // A scalar accumulator, which worker "w" feeds.
  ConformanceWorld& Accumulator(uint32_t take, Reduction reduction = Reduction::kMean) {
    ShardOptions options = TakeOf(take);
    options.consistency.reduction = reduction;
    World(options).Start({"w"});
    return *world_;
  }

 private:
  std::unique_ptr<ConformanceWorld> world_;
};

using ConditionalAccumulatorTest = ConformanceTest;
using SyncReplicasTest = ConformanceTest;

std::string TransportName(const ::testing::TestParamInfo<MakeConformanceWorld>& info) {
  if (info.param == &MakeShardConformance) return "InProcess";
  return info.param == &MakeServerConformance ? "OverGrpc" : "OverSharedMemory";
}

INSTANTIATE_TEST_SUITE_P(, ConditionalAccumulatorTest,
                         ::testing::Values(&MakeShardConformance, &MakeServerConformance,
                                           &MakeSharedConformance),
                         TransportName);
INSTANTIATE_TEST_SUITE_P(, SyncReplicasTest,
                         ::testing::Values(&MakeShardConformance, &MakeServerConformance,
                                           &MakeSharedConformance),
                         TransportName);

// ---- ConditionalAccumulator ----

TEST_P(ConditionalAccumulatorTest, C01BeginsAtStepZeroWithNothingAccumulated) {
  ConformanceWorld& world = Accumulator(2);
  EXPECT_EQ(world.step(), 0u);
  EXPECT_EQ(world.accumulated(), 0u);
  EXPECT_EQ(world.waiting(), 0u);
  EXPECT_EQ(world.shard().Describe().consistency.reduction, Reduction::kMean);
}

TEST_P(ConditionalAccumulatorTest, C02AcceptsAGradientOfTheCurrentStep) {
  ConformanceWorld& world = Accumulator(1);
  EXPECT_THAT(world.Push("w", 0, {1}), Applied(1));
  EXPECT_THAT(world.Push("w", 1, {1}), Applied(2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2));
}

TEST_P(ConditionalAccumulatorTest, C02DifferenceRefusesAGradientOfAFutureStep) {
  ConformanceWorld& world = Accumulator(1);
  EXPECT_THAT(world.Push("w", 1, {1}),
              IsError(Reason::kFutureStep, HasSubstr("of step 1, the server is at step 0")));
  EXPECT_EQ(world.step(), 0u);
  EXPECT_EQ(world.accumulated(), 0u);
}

TEST_P(ConditionalAccumulatorTest, C03DifferenceTellsThatAnOlderGradientWasDropped) {
  ConformanceWorld& world = Accumulator(1);
  ASSERT_THAT(world.Push("w", 0, {1}), Applied(1));
  ASSERT_THAT(world.Push("w", 1, {1}), Applied(2));
  EXPECT_THAT(world.Push("w", 0, {9}), Stale(2, 2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2));
}

TEST_P(ConditionalAccumulatorTest, C04JudgesStalenessBeforeTheShape) {
  ConformanceWorld& world = Accumulator(1);
  ASSERT_THAT(world.Push("w", 0, {1}), Applied(1));
  EXPECT_THAT(world.Push("w", 0, {1, 2, 3}), Stale(1, 1));
}

TEST_P(ConditionalAccumulatorTest, C05CopiesTheFirstGradientAndAddsTheOthers) {
  ConformanceWorld& world = Accumulator(3, Reduction::kSum);
  EXPECT_THAT(world.Push("w", 0, {10}), Accepted(0));
  EXPECT_EQ(world.accumulated(), 1u);
  EXPECT_THAT(world.Push("w", 0, {20}), Accepted(0));
  EXPECT_EQ(world.accumulated(), 2u);
  EXPECT_THAT(world.Push("w", 0, {60}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-90));
}

TEST_P(ConditionalAccumulatorTest, C06RefusesAnotherShapeAndKeepsCounterAndValue) {
  ConformanceWorld& world = Accumulator(2);
  ASSERT_THAT(world.Push("w", 0, {10}), Accepted(0));
  EXPECT_THAT(world.Push("w", 0, {1, 2}), IsError(Reason::kBadChunk, HasSubstr("outside")));
  EXPECT_THAT(world.Push("w", 0, {}), IsError(Reason::kBadChunk, HasSubstr("")));
  EXPECT_EQ(world.accumulated(), 1u);
  ASSERT_THAT(world.Push("w", 0, {20}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-15));
}

TEST_P(ConditionalAccumulatorTest, C07AnswersEveryApplyThoughNobodyTakes) {
  ConformanceWorld& world = Accumulator(100);
  for (uint32_t count = 1; count <= 10; ++count) {
    EXPECT_THAT(world.Push("w", 0, {1}), Accepted(0));
    EXPECT_EQ(world.accumulated(), count);
  }
}

TEST_P(ConditionalAccumulatorTest, C09TakeFiresOnlyWithEnoughGradientsAndTakesThemAll) {
  ConformanceWorld& world = Accumulator(3);
  const auto taken = world.StartTake("w", 1);
  for (uint32_t count = 1; count <= 2; ++count) {
    EXPECT_THAT(world.Push("w", 0, {3}), Accepted(0));
    EXPECT_EQ(world.waiting(), 1u);
  }
  EXPECT_THAT(world.Push("w", 0, {6}), Applied(1));
  EXPECT_THAT(taken->Wait(), Takes(1, {-4}));
  EXPECT_EQ(world.accumulated(), 0u);
}

TEST_P(ConditionalAccumulatorTest, C10StepsByOneAndEmptiesTheCounter) {
  ConformanceWorld& world = Accumulator(2);
  for (uint64_t step = 0; step < 3; ++step) {
    ASSERT_THAT(world.Push("w", step, {4}), Accepted(step));
    ASSERT_THAT(world.Push("w", step, {8}), Applied(step + 1));
    EXPECT_EQ(world.step(), step + 1);
    EXPECT_EQ(world.accumulated(), 0u);
  }
  EXPECT_THAT(world.Parameters(), ElementsAre(-18));
}

// A step of four that continues with the three that came in time.
TEST_P(ConditionalAccumulatorTest, C10DividesTheMeanByTheActualCounter) {
  ShardOptions options = TakeOf(4);
  options.consistency.max_step_wait = absl::Seconds(5);
  options.consistency.on_max_step_wait = StepWaitAction::kProceed;
  ConformanceWorld& world = World(options);
  world.Start({"w"});
  for (const float gradient : {1.0f, 2.0f, 6.0f}) {
    ASSERT_THAT(world.Push("w", 0, {gradient}), Accepted(0));
  }
  world.Pass(absl::Seconds(5));
  EXPECT_TRUE(world.Reaches(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3));
}

TEST_P(ConditionalAccumulatorTest, C10LeavesTheSumUndivided) {
  ConformanceWorld& world = Accumulator(3, Reduction::kSum);
  for (const float gradient : {1.0f, 2.0f}) {
    ASSERT_THAT(world.Push("w", 0, {gradient}), Accepted(0));
  }
  ASSERT_THAT(world.Push("w", 0, {6}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-9));
}

TEST_P(ConditionalAccumulatorTest, C11TheNextGradientOverwritesTheSum) {
  ConformanceWorld& world = Accumulator(1);
  ASSERT_THAT(world.Push("w", 0, {100}), Applied(1));
  ASSERT_THAT(world.Push("w", 1, {1}), Applied(2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-101));
}

TEST_P(ConditionalAccumulatorTest, C12TakesAreServedInTheirOrder) {
  ConformanceWorld& world = Accumulator(1);
  std::vector<std::unique_ptr<PendingTake>> takes;
  for (uint64_t step = 1; step <= 3; ++step) takes.push_back(world.StartTake("w", step));
  for (uint64_t step = 0; step < 3; ++step) {
    ASSERT_THAT(world.Push("w", step, {1}), Applied(step + 1));
    EXPECT_EQ(world.waiting(), 2 - step);
    EXPECT_THAT(takes[step]->Wait(), Takes(step + 1, {-1 - static_cast<float>(step)}));
  }
}

// Over several streams the order is unknown. In process, takes of one step show it.
TEST(ConditionalAccumulatorOrderTest, C12TakesOfOneStepAreAnsweredFirstInFirstOut) {
  ShardWorld world(TakeOf(1), ParametersOnly(1));
  world.Start({"w"});
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

TEST_P(ConditionalAccumulatorTest, C13OneApplyCompletesAtMostOneTake) {
  ConformanceWorld& world = Accumulator(1);
  const auto first = world.StartTake("w", 1);
  const auto second = world.StartTake("w", 2);
  ASSERT_THAT(world.Push("w", 0, {1}), Applied(1));
  EXPECT_THAT(first->Wait(), Takes(1, {-1}));
  EXPECT_EQ(world.waiting(), 1u);
  ASSERT_THAT(world.Push("w", 1, {1}), Applied(2));
  EXPECT_THAT(second->Wait(), Takes(2, {-2}));
}

TEST_P(ConditionalAccumulatorTest, C14ACancelledTakeChangesNothingAndTheNextFires) {
  ConformanceWorld& world = Accumulator(2);
  ASSERT_THAT(world.Push("w", 0, {10}), Accepted(0));
  const auto cancelled = world.StartTake("w", 1);
  const auto next = world.StartTake("w", 1);
  cancelled->Cancel();
  EXPECT_EQ(world.waiting(), 1u);
  EXPECT_EQ(world.accumulated(), 1u);
  ASSERT_THAT(world.Push("w", 0, {20}), Applied(1));
  EXPECT_THAT(next->Wait(), Takes(1, {-15}));
}

// No call sets the step back, not even these.
TEST_P(ConditionalAccumulatorTest, C15DifferenceTheStepNeverGoesBackwards) {
  ConformanceWorld& world = Accumulator(1);
  for (uint64_t step = 0; step < 3; ++step) {
    ASSERT_THAT(world.Push("w", step, {1}), Applied(step + 1));
  }
  EXPECT_THAT(world.SetPolicy(TakeOf(2).consistency), IsOkAndHolds(3u));
  const auto offered = world.Initialize("w", {99});
  ASSERT_THAT(offered, IsOk());
  EXPECT_FALSE(offered->accepted);
  EXPECT_EQ(offered->step, Step(3));
  EXPECT_EQ(world.Join("w")->step, Step(3));
  EXPECT_EQ(world.step(), 3u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-3));
}

TEST_P(ConditionalAccumulatorTest, C16NewTermsKeepWhatWasAccepted) {
  ConformanceWorld& world = Accumulator(3);
  ASSERT_THAT(world.Push("w", 0, {3}), Accepted(0));
  EXPECT_THAT(world.SetPolicy(TakeOf(1).consistency), IsOkAndHolds(1u));
  EXPECT_EQ(world.accumulated(), 1u);
  ASSERT_THAT(world.Push("w", 0, {3}), Accepted(0));
  ASSERT_THAT(world.Push("w", 0, {6}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-4));
  EXPECT_THAT(world.Push("w", 1, {1}), Applied(2));
}

TEST_P(ConditionalAccumulatorTest, C17TellsHowManyAreAccumulated) {
  ConformanceWorld& world = Accumulator(3);
  EXPECT_EQ(world.accumulated(), 0u);
  ASSERT_THAT(world.Push("w", 0, {1}), Accepted(0));
  EXPECT_EQ(world.accumulated(), 1u);
  ASSERT_THAT(world.Push("w", 0, {1}), Accepted(0));
  EXPECT_EQ(world.accumulated(), 2u);
  ASSERT_THAT(world.Push("w", 0, {1}), Applied(1));
  EXPECT_EQ(world.accumulated(), 0u);
}

TEST_P(ConditionalAccumulatorTest, C18CountsGradientsWhoeverTheyComeFrom) {
  ConformanceWorld& world = World(TakeOf(3));
  world.Start({"a", "b"});
  EXPECT_THAT(world.Push("a", 0, {1}), Accepted(0));
  EXPECT_THAT(world.Push("a", 0, {2}), Accepted(0));
  EXPECT_THAT(world.Push("b", 0, {6}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3));
}

TEST_P(ConditionalAccumulatorTest, C18DifferenceCountsARepeatedPushOnce) {
  ConformanceWorld& world = Accumulator(2);
  const PushHeader header = world.NextHeader("w", 0);
  ASSERT_THAT(world.PushAs(header, {10}), Accepted(0));
  EXPECT_THAT(world.PushAs(header, {10}), Repeated(Disposition::kAccepted, 0));
  EXPECT_EQ(world.accumulated(), 1u);
  ASSERT_THAT(world.Push("w", 0, {20}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-15));
}

// Without a directory the next incarnation has no parameters and no sequences of the one before.
TEST_P(ConditionalAccumulatorTest, C20DifferenceSaysThatNothingWasKept) {
  ConformanceWorld& first = Accumulator(2);
  const PushHeader unanswered = first.NextHeader("w", 0);
  ASSERT_THAT(first.PushAs(unanswered, {10}), Accepted(0));
  const auto returned = first.Join("w");
  EXPECT_TRUE(returned->resumed);
  EXPECT_EQ(returned->last_sequence, Sequence(1));

  ShardOptions options = TakeOf(2);
  options.incarnation = Incarnation(2);
  options.session_base = SessionId(1000);
  ConformanceWorld& second = World(options);
  const auto welcome = second.Join("w");
  ASSERT_THAT(welcome, IsOk());
  EXPECT_FALSE(welcome->resumed);
  EXPECT_FALSE(welcome->initialized);
  EXPECT_EQ(welcome->last_sequence, Sequence());
  EXPECT_EQ(welcome->incarnation, Incarnation(2));
  ASSERT_THAT(second.Initialize("w", {0}), IsOk());
  PushHeader repeated = unanswered;
  repeated.session = welcome->session;
  const auto outcome = second.PushAs(repeated, {10});
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->disposition, Disposition::kStaleDropped);
  EXPECT_EQ(second.accumulated(), 0u);
}

// 2049 is no binary16, and their mean none either. Workers convert at their edge, where tensors are
// halves; what is summed and divided here is float32.
TEST_P(ConditionalAccumulatorTest, C21DifferenceAveragesHalvesAsFloat32) {
  LayoutRange half;
  half.name = "h";
  half.dtype = DataType::kFloat16;
  half.length = 1;
  ConformanceWorld& world = World(TakeOf(2), Layout::Create({half}).value());
  world.Start({"w"});
  ASSERT_THAT(world.Push("w", 0, {2048}), Accepted(0));
  ASSERT_THAT(world.Push("w", 0, {2049}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2048.5));
}

// ---- C8: take(0) ----

TEST(ConditionalAccumulatorZeroTest, C08RefusesATakeOfNothing) {
  ShardWorld world(TakeOf(1), ParametersOnly(1));
  world.Start({"w"});
  const Consistency nothing = TakeOf(0).consistency;
  EXPECT_THAT(nothing.Validate(), IsError(Reason::kBadArgument, HasSubstr("quorum is 0")));
  EXPECT_THAT(world.shard().SetConsistency(nothing),
              IsError(Reason::kBadArgument, HasSubstr("quorum is 0; expected at least 1")));
  EXPECT_EQ(world.shard().Describe().consistency.quorum, 1u);
}

// On the wire, 0 means that the field is not set.
TEST(ConditionalAccumulatorZeroTest, C08DifferenceOnTheWireZeroStandsForOne) {
  const auto world = MakeServerConformance(TakeOf(3), ParametersOnly(1));
  world->Start({"w"});
  EXPECT_THAT(world->SetPolicy(TakeOf(0).consistency), IsOkAndHolds(0u));
  EXPECT_EQ(world->shard().Describe().consistency.quorum, 1u);
}

// ---- C23: the examples of TensorFlow's own tests ----

// apply 10, 20 at step 0: the mean is 15; again at step 1 the same.
TEST_P(ConditionalAccumulatorTest, C23MeanOfTenAndTwentyIsFifteenStepAfterStep) {
  ConformanceWorld& world = Accumulator(2);
  for (uint64_t step = 0; step < 2; ++step) {
    ASSERT_THAT(world.Push("w", step, {10}), Accepted(step));
    ASSERT_THAT(world.Push("w", step, {20}), Applied(step + 1));
    EXPECT_THAT(world.Take("w", step + 1), Takes(step + 1, {-15 * static_cast<float>(step + 1)}));
  }
}

TEST_P(ConditionalAccumulatorTest, C23SumOfTenAndTwentyIsThirtyStepAfterStep) {
  ConformanceWorld& world = Accumulator(2, Reduction::kSum);
  for (uint64_t step = 0; step < 2; ++step) {
    ASSERT_THAT(world.Push("w", step, {10}), Accepted(step));
    ASSERT_THAT(world.Push("w", step, {20}), Applied(step + 1));
    EXPECT_THAT(world.Take("w", step + 1), Takes(step + 1, {-30 * static_cast<float>(step + 1)}));
  }
}

// At step s, gradients of local steps 1000 to 1004 with their own number for a value. TensorFlow
// takes the mean of those from s on; Sluice drops x < s, takes x = s and refuses x > s. No call
// sets the step, so the test trains up to it.
TEST_P(ConditionalAccumulatorTest, C23DifferenceOfFiveLocalStepsOnlyTheCurrentOneCounts) {
  constexpr uint64_t kFirst = 1000;
  ConformanceWorld& world = Accumulator(1);
  for (uint64_t step = 0; step < kFirst; ++step) {
    ASSERT_THAT(world.Push("w", step, {0}), Applied(step + 1));
  }
  float sum = 0;
  for (uint64_t current = kFirst; current < kFirst + 5; ++current) {
    for (uint64_t local = kFirst; local < kFirst + 5; ++local) {
      if (local == current) continue;
      const auto outcome = world.Push("w", local, {static_cast<float>(local)});
      if (local < current) {
        EXPECT_THAT(outcome, Stale(current, current - local));
      } else {
        EXPECT_THAT(outcome, IsError(Reason::kFutureStep, HasSubstr("the server is at step")));
      }
    }
    EXPECT_THAT(world.Push("w", current, {static_cast<float>(current)}), Applied(current + 1));
    sum += static_cast<float>(current);
    EXPECT_THAT(world.Parameters(), ElementsAre(-sum));
  }
}

TEST_P(ConditionalAccumulatorTest, C23TakeOfThreeBeforeAnyApplyBlocksUntilTheThird) {
  ConformanceWorld& world = Accumulator(3);
  const auto taken = world.StartTake("w", 1);
  ASSERT_THAT(world.Push("w", 0, {10}), Accepted(0));
  ASSERT_THAT(world.Push("w", 0, {20}), Accepted(0));
  EXPECT_EQ(world.waiting(), 1u);
  ASSERT_THAT(world.Push("w", 0, {60}), Applied(1));
  EXPECT_THAT(taken->Wait(), Takes(1, {-30}));
}

TEST_P(ConditionalAccumulatorTest, C23TenWaitingTakesGetOneValueEach) {
  ConformanceWorld& world = Accumulator(1);
  std::vector<std::unique_ptr<PendingTake>> takes;
  for (uint64_t step = 1; step <= 10; ++step) takes.push_back(world.StartTake("w", step));
  float sum = 0;
  for (uint64_t step = 0; step < 10; ++step) {
    ASSERT_THAT(world.Push("w", step, {static_cast<float>(step)}), Applied(step + 1));
    sum += static_cast<float>(step);
    EXPECT_THAT(takes[step]->Wait(), Takes(step + 1, {-sum}));
  }
}

// ---- SyncReplicasOptimizer ----

TEST_P(SyncReplicasTest, R01TheSlowestOfThreeIsABackupWhenTwoMakeAStep) {
  for (const ShardOptions& options : {TakeOf(2), Backup(2, 3)}) {
    ConformanceWorld& world = World(options);
    world.Start({"a", "b", "backup"});
    EXPECT_THAT(world.Push("a", 0, {10}), Accepted(0));
    EXPECT_THAT(world.Push("b", 0, {20}), Applied(1));
    EXPECT_THAT(world.Push("backup", 0, {90}), Stale(1, 1));
    EXPECT_THAT(world.Parameters(), ElementsAre(-15));
  }
}

TEST_P(SyncReplicasTest, R01FewerWorkersThanTheQuorumGiveSeveralBatchesEach) {
  ConformanceWorld& world = World(TakeOf(4));
  world.Start({"a", "b"});
  EXPECT_THAT(world.Push("a", 0, {1}), Accepted(0));
  EXPECT_THAT(world.Push("a", 0, {2}), Accepted(0));
  EXPECT_THAT(world.Push("b", 0, {3}), Accepted(0));
  EXPECT_THAT(world.Push("a", 0, {6}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3));
}

TEST_P(SyncReplicasTest, R04EachWorkerWaitsForTheNewStepAfterItsPush) {
  ConformanceWorld& world = World(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {2}), Accepted(0));
  const auto of_a = world.StartGoOn("a", Sequence(1));
  const auto of_b = world.StartGoOn("b", Sequence(1));
  ASSERT_THAT(world.Push("b", 0, {4}), Applied(1));
  EXPECT_THAT(of_a->Wait(), Takes(1, {-3}));
  EXPECT_THAT(of_b->Wait(), Takes(1, {-3}));
}

// TensorFlow's tokens have no names: a fast worker may take two and contribute twice.
TEST_P(SyncReplicasTest, R06DifferenceAWorkerHasOneContributionAndOneTokenPerStep) {
  ConformanceWorld& world = World(Sync(2));
  world.Start({"fast", "slow"});
  ASSERT_THAT(world.Push("fast", 0, {2}), Accepted(0));
  EXPECT_THAT(world.Push("fast", 0, {2}),
              IsError(Reason::kAlreadyContributed, HasSubstr("pull step 1 first")));
  const auto token = world.StartGoOn("fast", Sequence(1));
  ASSERT_THAT(world.Push("slow", 0, {4}), Applied(1));
  EXPECT_THAT(token->Wait(), Takes(1, {-3}));
}

// TensorFlow has an accumulator for each variable: part of a push may count.
TEST_P(SyncReplicasTest, R07DifferenceAPushCountsForAllTensorsOrNone) {
  ConformanceWorld& world = World(TakeOf(2), LayoutOf({{"first", 1}, {"second", 1}}));
  world.Start({"w"});
  const float nan = std::nanf("");
  EXPECT_THAT(world.Push("w", 0, {100, nan}),
              IsError(Reason::kNotFinite, HasSubstr("second[0] is nan")));
  EXPECT_THAT(world.Push("w", 0, {100}),
              IsError(Reason::kBadChunk, HasSubstr("elements 1 to 1 are missing")));
  EXPECT_EQ(world.accumulated(), 0u);
  ASSERT_THAT(world.Push("w", 0, {1, 2}), Accepted(0));
  ASSERT_THAT(world.Push("w", 0, {3, 6}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2, -4));
}

// On a restore TensorFlow sets the step of each accumulator; Sluice has one step for all, and
// reports it to each worker that joins.
TEST_P(SyncReplicasTest, R08WhoeverJoinsGoesOnAtTheOneStepOfAllTensors) {
  ConformanceWorld& world = World(TakeOf(1), LayoutOf({{"first", 1}, {"second", 1}}));
  world.Start({"w"});
  for (uint64_t step = 0; step < 3; ++step) {
    ASSERT_THAT(world.Push("w", step, {1, 2}), Applied(step + 1));
  }
  const auto late = world.Join("late");
  ASSERT_THAT(late, IsOk());
  EXPECT_EQ(late->step, Step(3));
  EXPECT_THAT(world.Take("late", 3), Takes(3, {-3, -6}));
  EXPECT_THAT(world.Push("late", 3, {1, 2}), Applied(4));
  EXPECT_THAT(world.Parameters(), ElementsAre(-4, -8));
}

// ---- R12: where TensorFlow hangs ----

TEST_P(SyncReplicasTest, R12DifferenceAWorkerThatDiesWithItsTokenIsWaitedForNoLonger) {
  ConformanceWorld& world = World(Sync(3));
  world.Start({"a", "b", "c"});
  ASSERT_THAT(world.Push("a", 0, {2}), Accepted(0));
  const auto token = world.StartGoOn("a", Sequence(1));
  world.Lose("b");
  ASSERT_THAT(world.Leave("c"), IsOk());
  world.Pass(absl::Seconds(10));
  EXPECT_THAT(token->Wait(), Takes(1, {-2}));
  EXPECT_THAT(world.Push("a", 1, {2}), Applied(2));
}

TEST_P(SyncReplicasTest, R12DifferenceFewerWorkersThanTheQuorumStillMakeSteps) {
  ConformanceWorld& world = World(Backup(2, 3));
  world.Start({"a", "b", "c"});
  ASSERT_THAT(world.Leave("b"), IsOk());
  ASSERT_THAT(world.Leave("c"), IsOk());
  EXPECT_THAT(world.Push("a", 0, {2}), Applied(1));
}

TEST_P(SyncReplicasTest, R12DifferenceTheLastGradientsMakeAStepWhenAllHaveLeft) {
  ConformanceWorld& world = World(TakeOf(3));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {2}), Accepted(0));
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_TRUE(world.Reaches(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2));
}

TEST_P(SyncReplicasTest, R12DifferenceASecondTakeOfAStepIsAnsweredToo) {
  ConformanceWorld& world = World(TakeOf(1));
  world.Start({"w"});
  ASSERT_THAT(world.Push("w", 0, {2}), Applied(1));
  EXPECT_THAT(world.Take("w", 1), Takes(1, {-2}));
  EXPECT_THAT(world.Take("w", 1), Takes(1, {-2}));
}

TEST_P(SyncReplicasTest, R12DifferenceATakeThatWaitsEndsWithTheServer) {
  ConformanceWorld& world = World(TakeOf(1));
  world.Start({"w"});
  const auto taken = world.StartTake("w", 1);
  world.shard().Drain();
  EXPECT_THAT(taken->Wait(), IsError(Reason::kDraining, HasSubstr("draining")));
}

}  // namespace
}  // namespace sluice
