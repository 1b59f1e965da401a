// What a shard does when training diverges.

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/server/shard/learning_world.h"
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

TEST(StopOnDivergenceTest, WorkersAreToldWhatWasSeenAndWhatToDo) {
  LearningWorld world(Stopping(Sync(1)));
  world.Diverge();
  const auto diverged =
      IsError(Reason::kDiverged, AllOf(HasSubstr("has ended the job, because training diverges"),
                                       HasSubstr("; lower the learning rate")));
  EXPECT_TRUE(world.Diverged());
  EXPECT_THAT(world.PushLoss(0.3F), diverged);
  EXPECT_THAT(world.Pull(0).result(), diverged);
  EXPECT_THAT(world.Join("b"), diverged);
  EXPECT_THAT(world.Heard("owner"), ElementsAre("draining 647 because training diverges"));
}

TEST(RestoreOnDivergenceTest, TheShardOnlySaysThatTheServerShallGoBack) {
  ShardOptions options = Sync(1);
  options.guards.on_divergence = DivergenceAction::kRestore;
  LearningWorld world(options);
  world.PushLosses(1200, 2.3F);
  EXPECT_FALSE(world.shard().Describe().goes_back);  // a loss that stays is no reason
  world.PushLosses(147, 7);
  const ShardStatus status = world.shard().Describe();
  EXPECT_TRUE(status.goes_back);
  EXPECT_FALSE(status.diverged);
  EXPECT_EQ(status.phase, Phase::kTraining);
  EXPECT_THAT(world.PushLoss(7), IsOk());
}

absl::Status GoesBack() { return absl::UnavailableError("the server goes back"); }

TEST(RestoreOnDivergenceTest, ASuspendedShardSendsAllAwayToJoinAgainAndAnnouncesNothing) {
  const auto again = HasCode(absl::StatusCode::kUnavailable, HasSubstr("the server goes back"));
  LearningWorld world(Sync(1));
  ASSERT_THAT(world.Observe("o"), IsOk());
  const TestPull waiting = world.Pull(10);
  ASSERT_TRUE(world.shard().Suspend(GoesBack()));
  EXPECT_THAT(waiting.result().status(), again);  // it does not take this step for the last
  EXPECT_THAT(world.PushLoss(2), again);
  EXPECT_THAT(world.Join("b"), again);
  EXPECT_THAT(world.Heard("a"), IsEmpty());
  EXPECT_THAT(world.Heard("o"), IsEmpty());
  EXPECT_THAT(world.Heard("owner"), IsEmpty());
  EXPECT_FALSE(world.shard().Suspend(GoesBack()));
  world.shard().Drain();  // the operator's word counts
  EXPECT_THAT(world.PushLoss(2), IsError(Reason::kDraining, HasSubstr("draining")));
  EXPECT_THAT(world.Heard("owner"), ElementsAre("draining 0"));
}

TEST(RestoreOnDivergenceTest, AJobThatIsOverOrGoesDownIsNotSuspended) {
  LearningWorld world(Sync(1));
  ASSERT_THAT(world.Leave("a"), IsOk());
  EXPECT_FALSE(world.shard().Suspend(GoesBack()));
  LearningWorld drained(Sync(1));
  drained.shard().Drain();
  EXPECT_FALSE(drained.shard().Suspend(GoesBack()));
}

TEST(RestoreOnDivergenceTest, AServerThatHasGoneBackSaysSoFromTheBeginning) {
  ShardOptions options = Sync(1);
  options.warnings = {{WarningKind::kWentBack, Step(3), absl::nullopt, "training has gone back"}};
  LearningWorld world(options);
  ASSERT_THAT(world.Warnings(), SizeIs(1));
  EXPECT_EQ(world.Warnings()[0].kind, WarningKind::kWentBack);
  EXPECT_EQ(world.Warnings()[0].over, absl::nullopt);
}

TEST(StopOnDivergenceTest, ALossThatStaysEndsTheJobOnlyIfThatIsAskedFor) {
  LearningWorld world(Stopping(Sync(1)));
  world.PushLosses(1500, 2.3F);
  ASSERT_THAT(world.Warnings(), SizeIs(1));
  EXPECT_EQ(world.Warnings()[0].kind, WarningKind::kDoesNotLearn);
  EXPECT_FALSE(world.Diverged());
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
  world.Diverge();
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
  ASSERT_TRUE(world.Diverged());
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

TEST(StopOnDivergenceTest, OneWorkersGradientsThatAreNotFiniteDoNotEndTheJobOfOthers) {
  LearningWorld world(Stopping(SkippingNotFinite(Async(1))), {"a", "b"});
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(world.PushLossOf("a", 1), IsOk());
    for (int j = 0; j < 20; ++j) {
      ASSERT_THAT(world.PushLossOf("b", kNotANumber, {kNotANumber, 0, 0}), IsOk());
    }
  }
  EXPECT_FALSE(world.Diverged());
}

// ---- Checkpoints ----

struct TakenCheckpoint {
  uint64_t step;
  uint64_t suspect_since;  // 0: it is not suspect
};
bool operator==(const TakenCheckpoint& a, const TakenCheckpoint& b) {
  return a.step == b.step && a.suspect_since == b.suspect_since;
}
void PrintTo(const TakenCheckpoint& taken, std::ostream* out) {
  *out << "{" << taken.step << ", " << taken.suspect_since << "}";
}

class CheckpointLog {
 public:
  CheckpointLog(LearningWorld& world, uint64_t every) {
    world.shard().TakeCheckpoints(every, [this](const auto& checkpoint) {
      const Step since = (*checkpoint)->suspect_since.value_or(Step());
      taken_.push_back({(*checkpoint)->step.value(), since.value()});
    });
  }
  std::vector<TakenCheckpoint> Take() { return std::exchange(taken_, {}); }

 private:
  std::vector<TakenCheckpoint> taken_;
};

TEST(SuspectCheckpointTest, EachIsTakenAndSaysSinceWhenTrainingIsSuspect) {
  for (const ShardOptions& options : {Sync(1), Stopping(Sync(1))}) {
    LearningWorld world(options);
    CheckpointLog log(world, 100);
    world.Diverge();
    EXPECT_THAT(log.Take(), ElementsAre(TakenCheckpoint{100, 0}, TakenCheckpoint{200, 0},
                                        TakenCheckpoint{300, 0}, TakenCheckpoint{400, 0},
                                        TakenCheckpoint{500, 0}, TakenCheckpoint{600, 501}));
  }
}

TEST(SuspectCheckpointTest, IsNotSuspectOnceTrainingIsFine) {
  LearningWorld world(Sync(1));
  CheckpointLog log(world, 550);
  world.Diverge();
  world.PushLosses(453, 0.3F);
  EXPECT_THAT(log.Take(), ElementsAre(TakenCheckpoint{550, 501}, TakenCheckpoint{1100, 0}));
}

TEST(SuspectCheckpointTest, IsThatOfALossThatIsBackAtTheFirstOne) {
  LearningWorld world(Sync(1));
  CheckpointLog log(world, 1000);
  world.PushLosses(500, 2.3F);
  world.PushLosses(200, 2);
  world.PushLosses(300, 2.3F);
  EXPECT_THAT(log.Take(), ElementsAre(TakenCheckpoint{1000, 791}));
}

}  // namespace
}  // namespace sluice
