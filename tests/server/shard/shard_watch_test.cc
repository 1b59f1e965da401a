// What a shard says about training that does not learn, and what it does then.

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/recording_journal.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

ShardOptions Stopping(ShardOptions options) {
  options.guards.on_divergence = DivergenceAction::kStop;
  return options;
}

ShardOptions StoppingIfFlat(ShardOptions options) {
  options.guards.on_divergence = DivergenceAction::kStopIfFlat;
  return options;
}

ShardOptions Skipping(ShardOptions options) {
  options.guards.skip_not_finite = true;
  return options;
}

// A job of one worker "a" that reports losses.
class LearningWorld : public ShardWorld {
 public:
  explicit LearningWorld(const ShardOptions& options) : ShardWorld(options) { Start({"a"}); }

  absl::StatusOr<PushOutcome> PushLoss(absl::optional<float> loss,
                                       const Values& gradient = {0, 0, 0}) {
    PushHeader header = NextHeader("a", step());
    header.loss = loss;
    return PushAs(header, gradient);
  }
  void PushLosses(int count, float loss) {
    for (int i = 0; i < count; ++i) EXPECT_THAT(PushLoss(loss), IsOk());
  }
  std::vector<TrainingWarning> Warnings() { return shard().Describe().warnings; }
};

// A loss that falls to 0.3, and then rises for as long as it takes.
void Diverge(LearningWorld& world) {
  world.PushLosses(100, 2.3F);
  world.PushLosses(400, 0.3F);
  world.PushLosses(147, 7);
}

// ---- Warnings ----

TEST(WatchTest, AJobThatLearnsIsNotWarnedOf) {
  LearningWorld world(Sync(1));
  world.PushLosses(100, 2.3F);
  world.PushLosses(2000, 0.3F);
  EXPECT_THAT(world.Warnings(), IsEmpty());
}

TEST(WatchTest, ALossThatRisesIsOneWarningWithWhatToDo) {
  LearningWorld world(Sync(1));
  Diverge(world);
  const std::vector<TrainingWarning> warnings = world.Warnings();
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].kind, WarningKind::kLossRises);
  EXPECT_EQ(warnings[0].since, Step(501));
  EXPECT_EQ(warnings[0].over, absl::nullopt);
  EXPECT_THAT(warnings[0].text,
              AllOf(StartsWith("training diverges since step 501: the loss is 7, but was down to"),
                    HasSubstr("; lower the learning rate, which is 1; or bound gradients")));
}

TEST(WatchTest, AWarningThatIsOverStaysWithItsEnd) {
  LearningWorld world(Sync(1));
  Diverge(world);
  world.PushLosses(100, 0.3F);
  const std::vector<TrainingWarning> warnings = world.Warnings();
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].over, Step(685));
}

TEST(WatchTest, TheSameTroubleAgainReplacesTheWarning) {
  LearningWorld world(Sync(1));
  Diverge(world);
  world.PushLosses(400, 0.3F);
  world.PushLosses(200, 7);
  const std::vector<TrainingWarning> warnings = world.Warnings();
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].since, Step(1048));
  EXPECT_EQ(warnings[0].over, absl::nullopt);
}

TEST(WatchTest, AStepsLossIsTheMeanOfItsGradients) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  for (int i = 0; i < 1000; ++i) {
    for (const auto& [name, loss] : {std::make_pair("a", 1.0F), std::make_pair("b", 3.0F)}) {
      PushHeader header = world.NextHeader(name, world.step());
      header.loss = loss;
      ASSERT_THAT(world.PushAs(header, {0, 0, 0}), IsOk());
    }
  }
  const auto warnings = world.shard().Describe().warnings;
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].kind, WarningKind::kDoesNotLearn);
  EXPECT_THAT(warnings[0].text,
              AllOf(StartsWith("training does not learn since step 1: the loss has stayed"),
                    HasSubstr("it was 2 and is 2; look at data and labels")));
}

TEST(WatchTest, WithoutLossesTheParametersTell) {
  LearningWorld world(Sync(1));
  for (int i = 0; i < 16; ++i) ASSERT_THAT(world.PushLoss(absl::nullopt, {1, 1, 1}), IsOk());
  ASSERT_THAT(world.PushLoss(absl::nullopt, {1e6, 1, 1}), IsOk());
  for (int i = 0; i < 15; ++i) ASSERT_THAT(world.PushLoss(absl::nullopt), IsOk());
  ASSERT_THAT(world.Warnings(), SizeIs(1));
  EXPECT_EQ(world.Warnings()[0].kind, WarningKind::kParametersGrow);
}

TEST(WatchTest, GradientsThatAreNotFiniteAreSeenAlsoIfTheyMakeNoStep) {
  LearningWorld world(Skipping(Async(1)));
  for (int i = 0; i < 15; ++i) ASSERT_THAT(world.PushLoss(kNan, {kNan, 0, 0}), Skipped(0));
  EXPECT_THAT(world.Warnings(), IsEmpty());
  ASSERT_THAT(world.PushLoss(kNan, {kNan, 0, 0}), Skipped(0));
  ASSERT_THAT(world.Warnings(), SizeIs(1));
  EXPECT_EQ(world.Warnings()[0].kind, WarningKind::kNotFinite);
}

TEST(WatchTest, StepsThatWouldNotBeFiniteAreSeen) {
  constexpr float kHuge = 3e38F;
  LearningWorld world(Skipping(Sync(1)));
  ASSERT_THAT(world.PushLoss(1, {-kHuge, 0, 0}), IsOk());
  for (int i = 0; i < 16; ++i) ASSERT_THAT(world.PushLoss(1, {-kHuge, 0, 0}), IsOk());
  ASSERT_THAT(world.Warnings(), SizeIs(1));
  EXPECT_EQ(world.Warnings()[0].kind, WarningKind::kNotFinite);
}

TEST(WatchTest, HalfOfTheWorkersLostIsAWarningUntilTheyAreBack) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  world.Silence("b");
  world.Pass(absl::Seconds(11));
  auto warnings = world.shard().Describe().warnings;
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].kind, WarningKind::kWorkersLost);
  EXPECT_THAT(warnings[0].text, HasSubstr("1 of 2 workers were evicted"));
  ASSERT_THAT(world.Join("b"), IsOk());
  world.Pass(absl::Seconds(1));
  EXPECT_EQ(world.shard().Describe().warnings[0].over, Step(0));
}

TEST(WatchTest, AWorkerOfAnotherNameTakesThePlaceOfOneThatIsLost) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  for (const auto& [lost, next] :
       {std::make_pair("b", "c"), std::make_pair("c", "d"), std::make_pair("d", "e")}) {
    ASSERT_THAT(world.Join(next), IsOk());
    world.Silence(lost);
    world.Pass(absl::Seconds(11));
  }
  // Three were evicted, and three were present at most.
  EXPECT_THAT(world.shard().Describe().warnings, IsEmpty());
}

TEST(WatchTest, ALostWorkersPlaceIsTakenWhenAnotherOneJoins) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  world.Silence("b");
  world.Pass(absl::Seconds(11));
  ASSERT_THAT(world.shard().Describe().warnings, SizeIs(1));
  ASSERT_THAT(world.Join("c"), IsOk());
  EXPECT_EQ(world.shard().Describe().warnings[0].over, Step(0));
}

TEST(WatchTest, AWorkerThatTheOperatorEvictedIsNotLost) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.shard().Evict("b"), IsOk());
  world.Pass(absl::Seconds(1));
  EXPECT_THAT(world.shard().Describe().warnings, IsEmpty());
}

TEST(WatchTest, ABoundThatDropsMostGradientsIsAWarning) {
  ShardWorld world(Bounded(1, 0));
  world.Start({"a"});
  for (int i = 0; i < 100; ++i) {
    const uint64_t now = world.step();
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Applied(now + 1));
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Stale(now + 1, 1));
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Stale(now + 1, 1));
  }
  const auto warnings = world.shard().Describe().warnings;
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].kind, WarningKind::kGradientsDropped);
  EXPECT_THAT(warnings[0].text, HasSubstr("older than --max-staleness; raise it"));
}

TEST(WatchTest, GradientsThatAnotherModeDroppedAreNotHeldAgainstABound) {
  ShardWorld world(Backup(1, 2));
  world.Start({"a", "b"});
  for (int i = 0; i < 300; ++i) {
    const uint64_t now = world.step();
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Applied(now + 1));
    ASSERT_THAT(world.Push("b", now, {0, 0, 0}), Stale(now + 1, 1));
    ASSERT_THAT(world.Push("b", now, {0, 0, 0}), Stale(now + 1, 1));
  }
  ASSERT_THAT(world.shard().SetConsistency(Bounded(1, 0).consistency), IsOk());
  for (int i = 0; i < 300; ++i) {
    const uint64_t now = world.step();
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Applied(now + 1));
  }
  EXPECT_THAT(world.shard().Describe().warnings, IsEmpty());
}

// ---- To stop ----

TEST(StopOnDivergenceTest, WorkersAreToldWhatWasSeenAndWhatToDo) {
  LearningWorld world(Stopping(Sync(1)));
  Diverge(world);
  const auto diverged =
      IsError(Reason::kDiverged, AllOf(HasSubstr("has ended the job, because training diverges"),
                                       HasSubstr("; lower the learning rate")));
  EXPECT_TRUE(world.shard().Describe().diverged);
  EXPECT_THAT(world.PushLoss(0.3F), diverged);
  EXPECT_THAT(world.Pull(0).result(), diverged);
  EXPECT_THAT(world.Join("b"), diverged);
  EXPECT_THAT(world.Heard("owner"), ElementsAre("draining 647 because training diverges"));
}

TEST(StopOnDivergenceTest, ALossThatStaysEndsTheJobOnlyIfThatIsAskedFor) {
  LearningWorld world(Stopping(Sync(1)));
  world.PushLosses(1500, 2.3F);
  ASSERT_THAT(world.Warnings(), SizeIs(1));
  EXPECT_EQ(world.Warnings()[0].kind, WarningKind::kDoesNotLearn);
  EXPECT_FALSE(world.shard().Describe().diverged);
}

TEST(StopOnDivergenceTest, ALossThatRisesAfterItHasStayedEndsTheJob) {
  LearningWorld world(Stopping(Sync(1)));
  world.PushLosses(1000, 2.3F);
  world.PushLosses(147, 7);
  EXPECT_THAT(world.PushLoss(7), IsError(Reason::kDiverged, HasSubstr("training diverges")));
  const std::vector<TrainingWarning> warnings = world.Warnings();
  ASSERT_THAT(warnings, SizeIs(2));
  EXPECT_EQ(warnings[0].kind, WarningKind::kDoesNotLearn);
  EXPECT_EQ(warnings[0].over, Step(1147));
  EXPECT_EQ(warnings[1].kind, WarningKind::kLossRises);
  EXPECT_EQ(warnings[1].over, absl::nullopt);
  EXPECT_THAT(warnings[1].text, HasSubstr("the loss is 7, but was 2.3 in the first steps; "));
}

TEST(StopOnDivergenceTest, ThePushThatShowsItCounts) {
  LearningWorld world(StoppingIfFlat(Sync(1)));
  world.PushLosses(999, 2.3F);
  EXPECT_THAT(world.PushLoss(2.3F), Applied(1000));
  EXPECT_THAT(world.PushLoss(2.3F), IsError(Reason::kDiverged, HasSubstr("does not learn")));
}

TEST(StopOnDivergenceTest, APullThatWaitsIsToldToo) {
  LearningWorld world(Stopping(Sync(1)));
  const TestPull waiting = world.Pull(100'000);
  Diverge(world);
  ASSERT_TRUE(waiting.answered());
  EXPECT_THAT(waiting.result(), IsError(Reason::kDiverged, HasSubstr("training diverges")));
}

TEST(StopOnDivergenceTest, AnAnswerThatTheJournalHoldsIsThatErrorWhenTheJournalEnds) {
  RecordingJournal journal;
  LearningWorld world(Stopping(Sync(1)));
  world.PushLosses(100, 2.3F);
  world.PushLosses(400, 0.3F);
  world.PushLosses(146, 7);
  world.shard().EnableJournal(&journal);
  absl::StatusOr<PushOutcome> answer = absl::UnknownError("not told");
  PushHeader header = world.NextHeader("a", world.step());
  header.loss = 7;
  auto push = world.BeginAs(header).Take();
  ASSERT_THAT(push->Add(ChunkOf(0, Values{0, 0, 0})), IsOk());
  world.shard().FinishPush(std::move(push),
                           [&](absl::StatusOr<PushOutcome> told) { answer = std::move(told); });
  ASSERT_TRUE(world.shard().Describe().diverged);
  world.shard().FailHeldAnswers(absl::UnavailableError("the end"));
  EXPECT_THAT(answer, IsError(Reason::kDiverged, HasSubstr("training diverges")));
}

TEST(StopOnDivergenceTest, LostWorkersDoNotEndTheJob) {
  ShardWorld world(Stopping(Sync(2)));
  world.Start({"a", "b"});
  world.Silence("b");
  world.Pass(absl::Seconds(11));
  ASSERT_THAT(world.shard().Describe().warnings, SizeIs(1));
  EXPECT_THAT(world.Push("a", 0, {0, 0, 0}), Applied(1));
}

// The steps of the periodic checkpoints of a job that diverges from step 501 on.
std::vector<uint64_t> Checkpoints(const ShardOptions& options) {
  LearningWorld world(options);
  std::vector<uint64_t> steps;
  world.shard().TakeCheckpoints(
      50, [&](const auto& checkpoint) { steps.push_back((*checkpoint)->step.value()); });
  Diverge(world);
  return steps;
}

TEST(StopOnDivergenceTest, NoCheckpointIsTakenWhileTrainingSeemsToDiverge) {
  EXPECT_THAT(Checkpoints(Stopping(Sync(1))),
              ElementsAre(50, 100, 150, 200, 250, 300, 350, 400, 450, 500));
  EXPECT_THAT(Checkpoints(Sync(1)),
              ElementsAre(50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600));
}

TEST(StopOnDivergenceTest, ACheckpointThatWasWithheldIsTakenAsSoonAsTrainingIsFine) {
  LearningWorld world(Stopping(Sync(1)));
  std::vector<uint64_t> steps;
  world.shard().TakeCheckpoints(
      500, [&](const auto& checkpoint) { steps.push_back((*checkpoint)->step.value()); });
  world.PushLosses(100, 2.3F);
  world.PushLosses(385, 0.3F);
  world.PushLosses(20, 7);
  EXPECT_THAT(steps, IsEmpty());
  world.PushLosses(1, 0.3F);
  EXPECT_THAT(steps, ElementsAre(506));
  world.PushLosses(600, 0.3F);
  EXPECT_THAT(steps, ElementsAre(506, 1000));
}

TEST(StopOnDivergenceTest, ACheckpointThatIsAskedForIsTakenAnyhow) {
  LearningWorld world(Stopping(Sync(1)));
  world.PushLosses(100, 2.3F);
  world.PushLosses(400, 0.3F);
  world.PushLosses(20, 7);
  ASSERT_TRUE(world.shard().Describe().withholds_checkpoints);
  Step taken;
  world.shard().TakeCheckpoint([&](const auto& checkpoint) { taken = (*checkpoint)->step; });
  EXPECT_EQ(taken, Step(520));
}

// Losses of which three of five are bad: too many to be sure, and too few for a verdict.
void Swing(LearningWorld& world, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    world.PushLosses(3, 7);
    world.PushLosses(2, 0.3F);
  }
}

TEST(StopOnDivergenceTest, CheckpointsAreNotWithheldForMoreThanThreeHundredSteps) {
  LearningWorld world(Stopping(Sync(1)));
  std::vector<uint64_t> steps;
  world.shard().TakeCheckpoints(
      100, [&](const auto& checkpoint) { steps.push_back((*checkpoint)->step.value()); });
  world.PushLosses(100, 2.3F);
  world.PushLosses(400, 0.3F);
  Swing(world, 200);
  EXPECT_THAT(world.Warnings(), IsEmpty());
  // Half of the losses have been bad since step 616.
  EXPECT_THAT(steps,
              ElementsAre(100, 200, 300, 400, 500, 600, 916, 1000, 1100, 1200, 1300, 1400, 1500));
}

TEST(StopOnDivergenceTest, CheckpointsOfALossThatIsBackAtTheFirstOneAreWithheldUntilTheVerdict) {
  LearningWorld world(StoppingIfFlat(Sync(1)));
  std::vector<uint64_t> steps;
  world.shard().TakeCheckpoints(
      200, [&](const auto& checkpoint) { steps.push_back((*checkpoint)->step.value()); });
  world.PushLosses(200, 2.3F);
  world.PushLosses(200, 2);
  world.PushLosses(1089, 2.3F);
  EXPECT_FALSE(world.shard().Describe().diverged);
  world.PushLosses(1, 2.3F);
  EXPECT_TRUE(world.shard().Describe().diverged);
  EXPECT_THAT(steps, ElementsAre(200, 400));
}

TEST(StopOnDivergenceTest, ParametersOfASuspectStepAreNotTheLastOnesToSave) {
  LearningWorld world(Stopping(Sync(1)));
  world.PushLosses(100, 2.3F);
  world.PushLosses(400, 0.3F);
  world.PushLosses(9, 7);
  EXPECT_FALSE(world.shard().Describe().withholds_checkpoints);
  world.PushLosses(1, 7);
  EXPECT_TRUE(world.shard().Describe().withholds_checkpoints);
  world.PushLosses(1, 0.3F);
  EXPECT_FALSE(world.shard().Describe().withholds_checkpoints);
}

TEST(StopOnDivergenceTest, AServerThatOnlyWarnsSavesAlsoASuspectStep) {
  LearningWorld world(Sync(1));
  Diverge(world);
  EXPECT_FALSE(world.shard().Describe().withholds_checkpoints);
}

}  // namespace
}  // namespace sluice
