// A shard continues from the checkpoint of another one.

#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/durable/checkpoints.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/change_settings.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A server that recovers `checkpoint`. Its workers are those that the world starts with, in order.
std::unique_ptr<ShardWorld> NextIncarnation(const ShardCheckpoint& checkpoint, ShardOptions options,
                                            const OptimizerOptions& optimizer = PlainSgd()) {
  options.incarnation = checkpoint.incarnations.current().Next();
  auto world = std::make_unique<ShardWorld>(options, *checkpoint.layout, optimizer);
  EXPECT_THAT(world->shard().durability().Restore(checkpoint), IsOk());
  world->shard().durability().BeginIncarnation({});
  return world;
}

// The header of a push that was computed on a step of an earlier incarnation.
PushHeader HeaderOf(ShardWorld& world, const char* name, uint64_t sequence, uint64_t step,
                    uint64_t incarnation = 1) {
  PushHeader header = world.NextHeader(name, step);
  header.sequence = Sequence(sequence);
  header.incarnation = Incarnation(incarnation);
  return header;
}

auto Is(Disposition disposition) {
  return IsOkAndHolds(Field(&PushOutcome::disposition, disposition));
}

// In the second incarnation, which does not know the workers.
void ExpectFirstStepWaitsForTwo(ShardWorld& world) {
  ASSERT_THAT(world.Join("c"), IsOk());
  EXPECT_THAT(world.PushAs(HeaderOf(world, "c", 1, 0, 2), {2, 2, 2}), Is(Disposition::kAccepted));
  ASSERT_THAT(world.Join("d"), IsOk());
  EXPECT_THAT(world.PushAs(HeaderOf(world, "d", 1, 0, 2), {4, 4, 4}), Is(Disposition::kApplied));
}

TEST(ShardCheckpointTest, ThereIsNoneBeforeThereAreParameters) {
  ShardWorld world(Sync(1));
  absl::Status status;
  world.shard().durability().TakeCheckpoint(
      [&](const auto& checkpoint) { status = checkpoint.status(); });
  EXPECT_THAT(status, IsError(Reason::kNotInitialized, HasSubstr("no parameters")));
}

TEST(ShardCheckpointTest, SaysWhetherTrainingHadEnded) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  EXPECT_FALSE(CheckpointOf(world.shard())->ended);
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_TRUE(CheckpointOf(world.shard())->ended);
  ASSERT_THAT(world.Join("b"), IsOk());
  EXPECT_FALSE(CheckpointOf(world.shard())->ended);
  world.shard().Drain();
  EXPECT_TRUE(CheckpointOf(world.shard())->ended);
}

TEST(ShardCheckpointTest, TrainingGoesOnToTheSameBits) {
  AdamOptions adam;
  adam.learning_rate = 0.5;
  adam.amsgrad = true;
  const auto train = [](ShardWorld& world, uint64_t from, uint64_t to, uint64_t incarnation) {
    for (uint64_t step = from; step < to; ++step) {
      const auto x = static_cast<float>(step);
      EXPECT_THAT(world.PushAs(HeaderOf(world, "a", step + 1, step, incarnation), {x, 1, 2 * x}),
                  Is(Disposition::kApplied));
    }
  };
  ShardWorld straight(Sync(1), ParametersOnly(3), adam);
  straight.Start({"a"});
  train(straight, 0, 10, 1);

  ShardWorld first(Sync(1), ParametersOnly(3), adam);
  first.Start({"a"});
  train(first, 0, 6, 1);
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Sync(1), adam);
  ASSERT_THAT(second->Join("a"), IsOk());
  EXPECT_EQ(second->step(), 6u);
  train(*second, 6, 10, 2);
  EXPECT_EQ(second->Parameters(), straight.Parameters());
  EXPECT_EQ(AllValues(*CheckpointOf(second->shard())), AllValues(*CheckpointOf(straight.shard())));
}

TEST(ShardCheckpointTest, NothingOfTheStepUnderWayIsInIt) {
  ShardWorld first(Sync(2));
  first.Start({"a", "b"});
  ASSERT_THAT(first.Push("a", 0, {2, 2, 2}), Accepted(0));
  const auto checkpoint = CheckpointOf(first.shard());
  ASSERT_THAT(checkpoint->workers, SizeIs(2));
  EXPECT_EQ(checkpoint->workers[0].last_sequence, Sequence(0));
  // So the worker may send it again.
  const auto second = NextIncarnation(*checkpoint, Sync(2));
  ASSERT_THAT(second->Join("a"), IsOk());
  ASSERT_THAT(second->Join("b"), IsOk());
  EXPECT_THAT(second->PushAs(HeaderOf(*second, "a", 1, 0), {2, 2, 2}), Is(Disposition::kAccepted));
  EXPECT_THAT(second->PushAs(HeaderOf(*second, "b", 1, 0), {4, 4, 4}), Is(Disposition::kApplied));
  EXPECT_THAT(second->Parameters(), ElementsAre(-3, -3, -3));
}

TEST(ShardCheckpointTest, APushThatIsPartOfItDoesNotCountAgain) {
  ShardWorld first(Sync(1));
  first.Start({"a"});
  ASSERT_THAT(first.Push("a", 0, {2, 2, 2}), Applied(1));
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Sync(1));
  const auto welcome = second->Join("a");
  ASSERT_THAT(welcome, IsOk());
  EXPECT_TRUE(welcome->resumed);
  EXPECT_TRUE(welcome->initialized);
  EXPECT_EQ(welcome->incarnation, Incarnation(2));
  EXPECT_EQ(welcome->last_sequence, Sequence(1));
  const auto outcome = second->PushAs(HeaderOf(*second, "a", 1, 0), {2, 2, 2});
  ASSERT_THAT(outcome, Is(Disposition::kDuplicate));
  EXPECT_EQ(outcome->first_disposition, Disposition::kApplied);
  EXPECT_THAT(second->Parameters(), ElementsAre(-2, -2, -2));
}

TEST(ShardCheckpointTest, AnAnswerThatWasDiscardedDoesNotComeBackWithTheStepUnderWay) {
  ShardWorld first(Sync(2));
  first.Start({"a", "b"});
  for (uint64_t step = 0; step < SessionRecord::kStoredAnswers; ++step) {
    ASSERT_THAT(first.Push("a", step, {2, 2, 2}), Accepted(step));
    ASSERT_THAT(first.Push("b", step, {2, 2, 2}), Applied(step + 1));
  }
  // This push takes the place of the first, and is itself not in the checkpoint.
  ASSERT_THAT(first.Push("a", SessionRecord::kStoredAnswers, {2, 2, 2}),
              Accepted(SessionRecord::kStoredAnswers));
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Sync(2));
  ASSERT_THAT(second->Join("a"), IsOk());
  EXPECT_THAT(second->PushAs(HeaderOf(*second, "a", 1, 0), {2, 2, 2}),
              IsError(Reason::kSequenceTooOld, HasSubstr("16")));
  EXPECT_THAT(second->PushAs(HeaderOf(*second, "a", 2, 1), {2, 2, 2}), Is(Disposition::kDuplicate));
}

// The answer to that push was discarded, because 16 stale pushes came after it.
TEST(ShardCheckpointTest, APushOfTheStepUnderWayIsNotTakenFromTheCountOfEarlierProcesses) {
  ShardWorld first(Sync(2));
  first.Start({"a", "b"});
  ASSERT_THAT(first.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(first.Push("b", 0, {2, 2, 2}), Applied(1));
  ASSERT_THAT(first.Restart("a"), IsOk());
  ASSERT_THAT(first.Push("a", 1, {2, 2, 2}), Accepted(1));
  for (size_t i = 0; i < SessionRecord::kStoredAnswers; ++i) {
    ASSERT_THAT(first.Push("a", 0, {2, 2, 2}), Stale(1, 1));
  }
  EXPECT_EQ(CheckpointOf(first.shard())->workers[0].pushes_before, 1u);
}

// Their pushes count for nobody's place any more: who joins shares what is left.
TEST(ShardCheckpointTest, AnotherNumberOfWorkersHearsWhatEachOfThoseBeforeHasPushed) {
  ShardWorld first(Sync(2));
  first.Start({"a", "b"});
  for (uint64_t step = 0; step < 3; ++step) {
    ASSERT_THAT(first.Push("a", step, {2, 2, 2}), Accepted(step));
    ASSERT_THAT(first.Push("b", step, {2, 2, 2}), Applied(step + 1));
  }
  ASSERT_THAT(first.Push("a", 3, {2, 2, 2}), Accepted(3));  // of no step
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Sync(1));
  const auto alone = second->Restart("a");
  ASSERT_THAT(alone, IsOk());
  EXPECT_EQ(alone->pushes_before, 0u);
  EXPECT_THAT(alone->earlier_launches, ElementsAre(ElementsAre(3, 3)));
  const auto again = NextIncarnation(*CheckpointOf(second->shard()), Sync(1));
  EXPECT_THAT(again->Restart("a")->earlier_launches, ElementsAre(ElementsAre(3, 3)));
}

TEST(ShardCheckpointTest, TheSameNumberOfWorkersHearsOfNoEarlierLaunch) {
  ShardWorld first(Async(1));
  first.Start({"a"});
  ASSERT_THAT(first.Push("a", 0, {2, 2, 2}), Applied(1));
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Async(1));
  const auto welcome = second->Restart("a");
  ASSERT_THAT(welcome, IsOk());
  EXPECT_THAT(welcome->earlier_launches, ::testing::IsEmpty());
  EXPECT_EQ(welcome->pushes_before, 1u);
}

// As with --until-step: the next launch takes what is left, whatever its number of workers.
TEST(ShardCheckpointTest, WorkersOfAJobThatHasEndedHearWhatThoseBeforeHavePushed) {
  for (const uint32_t workers : {2U, 3U}) {
    ShardWorld first(Sync(2));
    first.Start({"a", "b"});
    ASSERT_THAT(first.Push("a", 0, {2, 2, 2}), Accepted(0));
    ASSERT_THAT(first.Push("b", 0, {2, 2, 2}), Applied(1));
    for (const char* name : {"a", "b"}) ASSERT_THAT(first.Leave(name), IsOk());
    const auto second = NextIncarnation(*CheckpointOf(first.shard()), Sync(workers));
    EXPECT_THAT(second->shard().Sessions(), ::testing::IsEmpty());
    const auto welcome = second->Restart("a");
    ASSERT_THAT(welcome, IsOk());
    EXPECT_EQ(welcome->pushes_before, 0u);
    EXPECT_THAT(welcome->earlier_launches, ElementsAre(ElementsAre(1, 1)));
    // It has pushed nothing, so the next one hears the same.
    ASSERT_THAT(second->Leave("a"), IsOk());
    const auto third = NextIncarnation(*CheckpointOf(second->shard()), Sync(workers));
    EXPECT_THAT(third->Restart("a")->earlier_launches, ElementsAre(ElementsAre(1, 1)));
  }
}

TEST(ShardCheckpointTest, AWorkerThatLeftBeforeACrashHasLeft) {
  ShardWorld first(Sync(2));
  first.Start({"a", "b"});
  ASSERT_THAT(first.Push("a", 0, {2, 2, 2}), Accepted(0));
  ASSERT_THAT(first.Push("b", 0, {2, 2, 2}), Applied(1));
  ASSERT_THAT(first.Leave("a"), IsOk());
  const auto checkpoint = CheckpointOf(first.shard());
  const auto second = NextIncarnation(*checkpoint, Sync(2));
  ASSERT_THAT(second->Join("b"), IsOk());
  // Nobody waits for it, and its successor begins anew.
  EXPECT_THAT(second->PushAs(HeaderOf(*second, "b", 2, 1), {2, 2, 2}), Is(Disposition::kApplied));
  EXPECT_EQ(second->shard().Sessions()[0].presence, Presence::kLeft);
  EXPECT_EQ(second->Restart("a")->pushes_before, 0u);
  // What it has pushed is taken.
  const auto others = NextIncarnation(*checkpoint, Sync(3));
  EXPECT_THAT(others->Restart("b")->earlier_launches, ElementsAre(ElementsAre(1, 1)));
}

TEST(ShardCheckpointTest, AGradientOfAStepThatWasLostIsStale) {
  ShardWorld first(Async(1));
  first.Start({"a"});
  ASSERT_THAT(first.Push("a", 0, {1, 1, 1}), Applied(1));
  const auto checkpoint = CheckpointOf(first.shard());
  ASSERT_THAT(first.Push("a", 1, {1, 1, 1}), Applied(2));
  const auto second = NextIncarnation(*checkpoint, Async(1));
  ASSERT_THAT(second->Join("a"), IsOk());
  EXPECT_THAT(second->PushAs(HeaderOf(*second, "a", 3, 2), {1, 1, 1}),
              Is(Disposition::kStaleDropped));
  EXPECT_THAT(second->PushAs(HeaderOf(*second, "a", 4, 1), {1, 1, 1}), Is(Disposition::kApplied));
  EXPECT_EQ(second->step(), 2u);
}

TEST(ShardCheckpointTest, AProcessThatJoinedLaterMayRepeatItsPush) {
  ShardWorld first(Async(1));
  first.Start({"a"});
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Async(1));
  ASSERT_THAT(second->Join("a"), IsOk());
  const auto welcome = second->Join("late");
  ASSERT_THAT(welcome, IsOk());
  EXPECT_TRUE(welcome->resumed);
}

// The answers of the first process are discarded when another one takes its name.
TEST(ShardCheckpointTest, AProcessWhoseNameAnotherTookMayNotRepeatItsPush) {
  ShardWorld first(Async(1));
  first.Start({"a"});
  ASSERT_THAT(first.Push("a", 0, {1, 1, 1}), Applied(1));
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Async(1));
  const JoinRequest replaced = second->RequestOf("a");
  ASSERT_THAT(second->Restart("a"), IsOk());
  const auto third = NextIncarnation(*CheckpointOf(second->shard()), Async(1));
  second->Lose("a");
  for (ShardWorld* const world : {second.get(), third.get()}) {
    const auto welcome = world->JoinAs(replaced);
    ASSERT_THAT(welcome, IsOk());
    EXPECT_FALSE(welcome->resumed);
    EXPECT_EQ(welcome->last_sequence, Sequence());
  }
}

TEST(ShardCheckpointTest, AProcessWhoseSuccessorLeftMayNotRepeatItsPush) {
  ShardWorld first(Async(1));
  first.Start({"a"});
  ASSERT_THAT(first.Push("a", 0, {1, 1, 1}), Applied(1));
  const JoinRequest replaced = first.RequestOf("a");
  ASSERT_THAT(first.Restart("a"), IsOk());
  ASSERT_THAT(first.Leave("a"), IsOk());
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Async(1));
  EXPECT_FALSE(second->JoinAs(replaced)->resumed);
}

TEST(ShardCheckpointTest, TheSuccessorOfAProcessMayRepeatAPushThatWasLost) {
  ShardWorld first(Async(1));
  first.Start({"a"});
  ASSERT_THAT(first.Push("a", 0, {1, 1, 1}), Applied(1));
  const auto checkpoint = CheckpointOf(first.shard());
  ASSERT_THAT(first.Restart("a"), IsOk());
  const JoinRequest successor = first.RequestOf("a");
  const auto second = NextIncarnation(*checkpoint, Async(1));
  EXPECT_TRUE(second->JoinAs(successor)->resumed);
}

TEST(ShardCheckpointTest, TheFirstStepWaitsForOneInThePlaceOfAWorkerThatIsNotBack) {
  ShardWorld first(Sync(2));
  first.Start({"a", "b"});
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Sync(2));
  ASSERT_THAT(second->Join("a"), IsOk());
  ASSERT_THAT(second->PushAs(HeaderOf(*second, "a", 1, 0), {2, 2, 2}), Is(Disposition::kAccepted));
  EXPECT_THAT(second->Awaited(), ElementsAre("b"));
  second->Pass(absl::Seconds(10));
  EXPECT_EQ(second->step(), 0u);
  const auto other = second->Join("c");
  ASSERT_THAT(other, IsOk());
  EXPECT_EQ(other->index, 1u);
  EXPECT_THAT(second->PushAs(HeaderOf(*second, "c", 1, 0), {4, 4, 4}), Is(Disposition::kApplied));
  EXPECT_THAT(second->Parameters(), ElementsAre(-3, -3, -3));
}

TEST(ShardCheckpointTest, OfAJobBeforeItsFirstStepWaitsForAllWorkersThatWereLaunched) {
  ShardWorld first(Sync(2));
  first.Start({"a"});
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Sync(2));
  ASSERT_THAT(second->Join("a"), IsOk());
  EXPECT_THAT(second->PushAs(HeaderOf(*second, "a", 1, 0), {2, 2, 2}), Is(Disposition::kAccepted));
  EXPECT_EQ(second->step(), 0u);
  ASSERT_THAT(second->Join("b"), IsOk());
  EXPECT_THAT(second->PushAs(HeaderOf(*second, "b", 1, 0, 2), {4, 4, 4}),
              Is(Disposition::kApplied));
  EXPECT_THAT(second->Parameters(), ElementsAre(-3, -3, -3));
}

TEST(ShardCheckpointTest, OfAJobThatHasMadeAStepWaitsForThoseAloneThatWereThere) {
  ShardOptions patient = Sync(2);
  patient.start_timeout = absl::Seconds(1);
  ShardWorld first(patient);
  first.Start({"a"});
  first.Pass(absl::Seconds(1));
  ASSERT_THAT(first.Push("a", 0, {2, 2, 2}), Applied(1));
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Sync(2));
  ASSERT_THAT(second->Join("a"), IsOk());
  EXPECT_THAT(second->PushAs(HeaderOf(*second, "a", 2, 1), {2, 2, 2}), Is(Disposition::kApplied));
}

TEST(ShardCheckpointTest, AnotherLaunchMayTakeLongerThanALease) {
  ShardWorld first(Sync(2));
  first.Start({"a", "b"});
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Sync(2));
  second->Pass(absl::Seconds(60));
  EXPECT_THAT(second->Heard("owner"), ::testing::IsEmpty());
  ExpectFirstStepWaitsForTwo(*second);
}

TEST(ShardCheckpointTest, OfAJobThatWasOverWaitsForAllWorkersAgain) {
  ShardWorld first(Sync(2));
  first.Start({"a", "b"});
  ASSERT_THAT(first.Leave("a"), IsOk());
  ASSERT_THAT(first.Leave("b"), IsOk());
  const auto second = NextIncarnation(*CheckpointOf(first.shard()), Sync(2));
  ExpectFirstStepWaitsForTwo(*second);
}

TEST(ShardCheckpointTest, TheOperatorsTermsHoldOnUnlessTheServerIsGivenOthers) {
  ShardWorld first(Sync(1));
  first.Start({"a"});
  Consistency async = Async(3).consistency;
  ASSERT_THAT(ChangeConsistency(first.shard(), async), IsOk());
  ASSERT_THAT(ChangeLearningRate(first.shard(), 0.25), IsOk());
  const auto checkpoint = CheckpointOf(first.shard());
  EXPECT_TRUE(NextIncarnation(*checkpoint, Sync(1))->shard().Describe().consistency == async);
  EXPECT_EQ(NextIncarnation(*checkpoint, Sync(1))->shard().Describe().learning_rate, 0.25);
  const ShardOptions others = Bounded(1, 2);
  EXPECT_TRUE(NextIncarnation(*checkpoint, others)->shard().Describe().consistency ==
              others.consistency);
}

TEST(ShardCheckpointTest, AnotherModelIsRefused) {
  ShardWorld first(Sync(1));
  first.Start({"a"});
  const auto checkpoint = CheckpointOf(first.shard());
  ShardOptions options = Sync(1);
  options.incarnation = Incarnation(2);
  ShardWorld second(options, ParametersOnly(4));
  EXPECT_THAT(second.shard().durability().Restore(*checkpoint), IsOk());
  second.shard().durability().BeginIncarnation({});
  EXPECT_THAT(second.Join("a"), IsError(Reason::kLayoutMismatch, HasSubstr("\"w\" [4]")));
}

TEST(ShardCheckpointTest, AreTakenOfTheFirstParametersAndAfterEverySoManySteps) {
  ShardWorld world(Sync(1));
  std::vector<uint64_t> steps;
  world.shard().durability().TakeCheckpoints(
      2, [&](const auto& checkpoint) { steps.push_back((*checkpoint)->step.value()); });
  world.Start({"a"});
  EXPECT_THAT(steps, ElementsAre(0));
  for (uint64_t step = 0; step < 5; ++step) {
    ASSERT_THAT(world.Push("a", step, {1, 1, 1}), Applied(step + 1));
  }
  EXPECT_THAT(steps, ElementsAre(0, 2, 4));
}

TEST(ShardCheckpointTest, IsNotChangedByLaterSteps) {
  SgdOptions momentum = PlainSgd();
  momentum.momentum = 0.5;
  ShardWorld world(Sync(1), ParametersOnly(3), momentum);
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {1, 2, 3}), Applied(1));
  const auto checkpoint = CheckpointOf(world.shard());
  const Values before = AllValues(*checkpoint);
  ASSERT_THAT(world.Push("a", 1, {1, 2, 3}), Applied(2));
  EXPECT_EQ(AllValues(*checkpoint), before);
  EXPECT_THAT(before, ElementsAre(-1, -2, -3, 1, 2, 3));
}

TEST(ShardCheckpointTest, SlotsThatAreNotItsOptimizersAreRefused) {
  const auto checkpoint = std::const_pointer_cast<ShardCheckpoint>(TrainedCheckpoint());
  checkpoint->slots.pop_back();
  ShardWorld world(Sync(2), *checkpoint->layout, checkpoint->optimizer.options);
  EXPECT_THAT(world.shard().durability().Restore(*checkpoint),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("has 1 optimizer slots")));
}

TEST(IncarnationHistoryTest, AncestorsEndWhereAnOlderCheckpointIsRestored) {
  IncarnationHistory incarnations(Incarnation(1));
  incarnations = IncarnationHistory(Incarnation(2), incarnations, Step(10));
  incarnations = IncarnationHistory(Incarnation(3), incarnations, Step(8));
  EXPECT_TRUE(incarnations.Contains(Incarnation(1), Step(8)));
  EXPECT_FALSE(incarnations.Contains(Incarnation(1), Step(9)));
  EXPECT_FALSE(incarnations.Contains(Incarnation(2), Step(10)));
  EXPECT_TRUE(incarnations.Contains(Incarnation(3), Step(100)));
  EXPECT_FALSE(incarnations.Contains(Incarnation(4), Step(0)));
}

}  // namespace
}  // namespace sluice
