// What a shard says about training that does not learn.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/server/shard/learning_world.h"
#include "tests/testing/durable/checkpoints.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(WatchTest, AJobThatLearnsIsNotWarnedOf) {
  LearningWorld world(Sync(1));
  world.PushLosses(100, 2.3F);
  world.PushLosses(2000, 0.3F);
  EXPECT_THAT(world.Warnings(), IsEmpty());
}

TEST(WatchTest, ALossThatRisesIsOneWarningWithWhatToDo) {
  LearningWorld world(Sync(1));
  world.Diverge();
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
  world.Diverge();
  world.PushLosses(100, 0.3F);
  const std::vector<TrainingWarning> warnings = world.Warnings();
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].over, Step(685));
}

TEST(WatchTest, TheSameTroubleAgainReplacesTheWarning) {
  LearningWorld world(Sync(1));
  world.Diverge();
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
  LearningWorld world(SkippingNotFinite(Async(1)));
  for (int i = 0; i < 14; ++i) {
    ASSERT_THAT(world.PushLoss(kNotANumber, {kNotANumber, 0, 0}), Skipped(0));
  }
  EXPECT_THAT(world.Warnings(), IsEmpty());
  ASSERT_THAT(world.PushLoss(kNotANumber, {kNotANumber, 0, 0}), Skipped(0));
  ASSERT_THAT(world.Warnings(), SizeIs(1));
  EXPECT_EQ(world.Warnings()[0].kind, WarningKind::kNotFinite);
}

TEST(WatchTest, StepsThatWouldNotBeFiniteAreSeen) {
  constexpr float kHuge = 3e38F;
  LearningWorld world(SkippingNotFinite(Sync(1)));
  ASSERT_THAT(world.PushLoss(1, {-kHuge, 0, 0}), IsOk());
  for (int i = 0; i < 14; ++i) ASSERT_THAT(world.PushLoss(1, {-kHuge, 0, 0}), IsOk());
  EXPECT_THAT(world.Warnings(), IsEmpty());
  ASSERT_THAT(world.PushLoss(1, {-kHuge, 0, 0}), IsOk());
  ASSERT_THAT(world.Warnings(), SizeIs(1));
  EXPECT_EQ(world.Warnings()[0].kind, WarningKind::kNotFinite);
}

// Each of the workers needs as many steps as one process.
TEST(WatchTest, WhereAGradientIsAStepPatienceIsThatOfEachWorker) {
  LearningWorld world(Async(1), {"a", "b"});
  for (int i = 0; i < 999; ++i) {
    ASSERT_THAT(world.PushLossOf("a", 2.3F), IsOk());
    ASSERT_THAT(world.PushLossOf("b", 2.3F), IsOk());
  }
  ASSERT_THAT(world.PushLossOf("a", 2.3F), IsOk());
  EXPECT_THAT(world.Warnings(), IsEmpty());
  ASSERT_THAT(world.PushLossOf("b", 2.3F), IsOk());
  ASSERT_THAT(world.Warnings(), SizeIs(1));
  EXPECT_EQ(world.Warnings()[0].kind, WarningKind::kDoesNotLearn);
  EXPECT_THAT(world.Warnings()[0].text, HasSubstr("for 2000 steps"));
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
  ASSERT_THAT(second.shard().Restore(*checkpoint), IsOk());
  second.shard().BeginIncarnation({});
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

}  // namespace
}  // namespace sluice
