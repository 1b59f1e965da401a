// How a shard judges what workers report of training, and what it does when training diverges. What
// they are told is in tests/scripts/divergence.txt.

#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/durable/checkpoints.h"
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
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

ShardOptions Stopping(ShardOptions options) {
  options.guards.on_divergence = DivergenceAction::kStop;
  return options;
}

ShardOptions SkippingNotFinite(ShardOptions options) {
  options.guards.skip_not_finite = true;
  return options;
}

// The workers are those that the world starts with: "a" alone, unless told otherwise.
class LearningWorld : public ShardWorld {
 public:
  explicit LearningWorld(const ShardOptions& options,
                         const std::vector<std::string>& workers = {"a"})
      : ShardWorld(options) {
    Start(workers);
  }

  absl::StatusOr<PushOutcome> PushLossOf(const std::string& worker, absl::optional<float> loss,
                                         const Values& gradient = {0, 0, 0}) {
    PushHeader header = NextHeader(worker, step());
    header.loss = loss;
    return PushAs(header, gradient);
  }
  absl::StatusOr<PushOutcome> PushLoss(absl::optional<float> loss,
                                       const Values& gradient = {0, 0, 0}) {
    return PushLossOf("a", loss, gradient);
  }
  void PushLosses(int count, float loss) {
    for (int i = 0; i < count; ++i) EXPECT_THAT(PushLoss(loss), IsOk());
  }
  // The loss falls to 0.3 and then, from step 501 on, rises for as long as a verdict takes.
  void Diverge() {
    PushLosses(100, 2.3F);
    PushLosses(400, 0.3F);
    PushLosses(147, 7);
  }
  std::vector<TrainingWarning> Warnings() { return shard().Describe().warnings; }
  bool Diverged() { return shard().Describe().diverged; }
};

TEST(WatchTest, AStepsLossIsTheMeanOfItsGradients) {
  LearningWorld world(Sync(2), {"a", "b"});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_THAT(world.PushLossOf("a", 1), IsOk());
    ASSERT_THAT(world.PushLossOf("b", 3), IsOk());
  }
  const std::vector<TrainingWarning> warnings = world.Warnings();
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].kind, WarningKind::kDoesNotLearn);
  EXPECT_THAT(warnings[0].text,
              AllOf(StartsWith("training does not learn since step 1: the loss has stayed"),
                    HasSubstr("it was 2 and is 2; look at data and labels")));
}

TEST(WatchTest, ALossThatIsNotFiniteIsLeftOutOfTheMeanOfItsStep) {
  LearningWorld world(Sync(2), {"a", "b"});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_THAT(world.PushLossOf("a", 2.0F), IsOk());
    ASSERT_THAT(world.PushLossOf("b", kNotANumber), IsOk());
  }
  ASSERT_THAT(world.Warnings(), SizeIs(1));
  EXPECT_EQ(world.Warnings()[0].kind, WarningKind::kDoesNotLearn);
  EXPECT_THAT(world.Warnings()[0].text, HasSubstr("it was 2 and is 2"));
}

TEST(WatchTest, OneFiniteGradientInEachStepDoesNotHideTheOthers) {
  LearningWorld world(SkippingNotFinite(Sync(4)), {"a", "b", "c", "d"});
  for (int i = 0; i < 20; ++i) {
    for (const char* name : {"a", "b", "c"}) {
      ASSERT_THAT(world.PushLossOf(name, 1, {kNotANumber, 0, 0}), IsOk());
    }
    ASSERT_THAT(world.PushLossOf("d", 1), IsOk());
  }
  EXPECT_EQ(world.step(), 20u);
  ASSERT_THAT(world.Warnings(), SizeIs(1));
  EXPECT_EQ(world.Warnings()[0].kind, WarningKind::kNotFinite);
}

TEST(WatchTest, AGradientThatWouldNotCountAnyhowIsNotJudged) {
  LearningWorld world(SkippingNotFinite(Bounded(1, 0)), {"a", "b", "c"});
  for (uint64_t now = 0; now < 30; ++now) {
    auto a = world.Begin("a", now);
    auto b = world.Begin("b", now);
    ASSERT_THAT(world.Push("c", now, {0, 0, 0}), Applied(now + 1));
    ASSERT_THAT(world.Finish(std::move(a), {kNotANumber, 0, 0}), Stale(now + 1, 1));
    ASSERT_THAT(world.Finish(std::move(b), {kNotANumber, 0, 0}), Stale(now + 1, 1));
  }
  EXPECT_THAT(world.Warnings(), IsEmpty());
}

// What an asynchronous job says that diverges, with gradients that are old.
std::string AdviceIn(const OptimizerOptions& optimizer) {
  ShardWorld world(Async(1), ParametersOnly(3), optimizer);
  world.Start({"a"});
  for (int i = 0; i < 300; ++i) {
    PushHeader header = world.NextHeader("a", 0);
    header.loss = i < 100 ? 2 : 7;
    EXPECT_THAT(world.PushAs(header, {0, 0, 0}), IsOk());
  }
  const auto warnings = world.shard().Describe().warnings;
  EXPECT_THAT(warnings, SizeIs(1));
  return warnings.empty() ? "" : warnings[0].text;
}

TEST(WatchTest, NamesRulesForStaleGradientsOnlyWhereAutoUsesThem) {
  EXPECT_THAT(AdviceIn(PlainSgd()), HasSubstr("--staleness-rules=auto"));
  EXPECT_THAT(AdviceIn(AveragingOptions()), Not(HasSubstr("--staleness-rules")));
}

// ---- A job that goes on ----

TEST(WatchTest, AServerThatContinuesKnowsTheLossesOfTheFirstSteps) {
  LearningWorld first(Sync(1));
  first.PushLosses(100, 2.3F);
  first.PushLosses(1400, 0.3F);
  const auto checkpoint = CheckpointOf(first.shard());
  ShardOptions options = Sync(1);
  options.incarnation = Incarnation(2);
  ShardWorld second(options);
  ASSERT_THAT(second.shard().durability().Restore(*checkpoint), IsOk());
  second.shard().durability().BeginIncarnation({});
  ASSERT_THAT(second.Restart("a"), IsOk());
  for (int i = 0; i < 147; ++i) {
    PushHeader header = second.NextHeader("a", second.step());
    header.incarnation = Incarnation(2);
    header.loss = 7;
    ASSERT_THAT(second.PushAs(header, {0, 0, 0}), IsOk());
  }
  const auto warnings = second.shard().Describe().warnings;
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].kind, WarningKind::kLossRises);
  EXPECT_EQ(warnings[0].since, Step(1501));
}

// ---- What --on-divergence says ----

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

TEST(RestoreOnDivergenceTest, AServerThatHasGoneBackSaysSoFromTheBeginning) {
  ShardOptions options = Sync(1);
  options.warnings = {{WarningKind::kWentBack, Step(3), absl::nullopt, "training has gone back"}};
  LearningWorld world(options);
  ASSERT_THAT(world.Warnings(), SizeIs(1));
  EXPECT_EQ(world.Warnings()[0].kind, WarningKind::kWentBack);
  EXPECT_EQ(world.Warnings()[0].over, absl::nullopt);
}

TEST(StopOnDivergenceTest, AnAnswerThatTheJournalHoldsIsThatErrorWhenTheJournalEnds) {
  RecordingJournal journal;
  LearningWorld world(Stopping(Sync(1)));
  world.PushLosses(100, 2.3F);
  world.PushLosses(400, 0.3F);
  world.PushLosses(146, 7);
  world.shard().durability().EnableJournal(&journal);
  absl::StatusOr<PushOutcome> answer = absl::UnknownError("not told");
  PushHeader header = world.NextHeader("a", world.step());
  header.loss = 7;
  auto push = world.BeginAs(header).Take();
  ASSERT_THAT(push->Add(ChunkOf(0, Values{0, 0, 0})), IsOk());
  world.shard().store().FinishPush(
      std::move(push), [&](absl::StatusOr<PushOutcome> told) { answer = std::move(told); });
  ASSERT_TRUE(world.Diverged());
  world.shard().durability().FailHeldAnswers(absl::UnavailableError("the end"));
  EXPECT_THAT(answer, IsError(Reason::kDiverged, HasSubstr("training diverges")));
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
    world.shard().durability().TakeCheckpoints(every, [this](const auto& checkpoint) {
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
