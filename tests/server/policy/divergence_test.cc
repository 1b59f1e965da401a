#include "server/policy/divergence.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/policy/detector_job.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Job = DetectorJob;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// ---- The loss rises ----

TEST(DivergenceTest, ALossThatRisesForManyStepsIsSeenSinceItsFirstBadStep) {
  Job job;
  job.Steps(500, 2.3).Steps(500, 0.3);
  EXPECT_TRUE(job.Steps(146, 2.4).fine());
  ASSERT_FALSE(job.Steps(1, 2.4).fine());
  EXPECT_EQ(job.what(), Divergence::kLossRises);
  EXPECT_EQ(job.since(), 1001);
  EXPECT_THAT(job.seen(),
              AllOf(HasSubstr("the loss is 2.4,"), HasSubstr("2.3 in the first steps")));
}

TEST(DivergenceTest, BadBatchesNowAndThenAreNoTrouble) {
  Job job;
  job.Steps(500, 2.3).Steps(500, 0.3);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(job.Steps(3, 1e6).Steps(7, 0.3).fine());
}

TEST(DivergenceTest, ALossThatReturnsIsARecovery) {
  Job job;
  job.Steps(500, 2.3).Steps(500, 0.3).Steps(200, 5);
  ASSERT_FALSE(job.fine());
  EXPECT_FALSE(job.Steps(30, 0.3).fine());
  EXPECT_TRUE(job.Steps(30, 0.3).fine());
  EXPECT_EQ(job.suspect_since(), 0);
}

TEST(DivergenceTest, ALossThatRisesFromTheBeginningIsSeen) {
  Job job;
  ASSERT_FALSE(job.Steps(64, 2.3).Steps(200, 7).fine());
  EXPECT_EQ(job.what(), Divergence::kLossRises);
}

TEST(DivergenceTest, OneVeryLowLossDoesNotMakeLaterOnesBad) {
  EXPECT_TRUE(Job().Steps(500, 2.3).Steps(500, 0.3).Steps(1, -1e30).Steps(1000, 0.4).fine());
}

TEST(DivergenceTest, OneVeryHighFirstLossDoesNotHideARise) {
  Job job;
  job.Steps(1, 50).Steps(200, 2.3).Steps(500, 0.3);
  EXPECT_TRUE(job.Steps(146, 2.6).fine());
  ASSERT_FALSE(job.Steps(1, 2.6).fine());
  EXPECT_EQ(job.what(), Divergence::kLossRises);
  EXPECT_THAT(job.seen(), HasSubstr("2.304 in the first steps"));
}

TEST(DivergenceTest, LossesThatWereHighAsTheOptimizerBeganDoNotHideARise) {
  Job job;
  job.Steps(1, 2.3).Steps(3, 100).Steps(200, 2.3).Steps(500, 0.3);
  EXPECT_FALSE(job.Steps(147, 2.6).fine());
}

TEST(DivergenceTest, AJobThatLearnsAtOnceMayLoseSomeOfIt) {
  Job job;
  job.Steps(1, 2.3).Steps(1, 1.9).Steps(1, 1.5).Steps(1, 1).Steps(1, 0.5).Steps(500, 0.1);
  EXPECT_TRUE(job.Steps(1000, 0.5).fine());
}

// ---- Steps without a loss ----

TEST(DivergenceTest, AMinorityThatReportsLossesIsEnoughToSeeThemRise) {
  Job job;
  job.EveryFourth(100, 2.3).EveryFourth(200, 0.3);
  EXPECT_TRUE(job.EveryFourth(146, 7).fine());
  ASSERT_FALSE(job.Steps(1, 7).fine());
  EXPECT_EQ(job.what(), Divergence::kLossRises);
  EXPECT_EQ(job.since(), 1201);
}

TEST(DivergenceTest, AMinorityThatReportsLossesIsEnoughToSeeThemStay) {
  Job job;
  EXPECT_TRUE(job.EveryFourth(999, 2.3).fine());
  ASSERT_FALSE(job.Steps(1, 2.3).fine());
  EXPECT_EQ(job.what(), Divergence::kDoesNotLearn);
  EXPECT_EQ(job.since(), 1);
  EXPECT_THAT(job.seen(), HasSubstr("for 3997 steps"));
}

TEST(DivergenceTest, AMinorityThatReportsLossesIsEnoughToSeeThatTheyAreNotFinite) {
  Job job;
  EXPECT_TRUE(job.EveryFourth(35, kNan).fine());
  ASSERT_FALSE(job.Steps(1, kNan).fine());
  EXPECT_EQ(job.what(), Divergence::kNotFinite);
}

TEST(DivergenceTest, TheLatestLossDecidesWhetherParametersMayGrow) {
  EXPECT_TRUE(Job().Steps(16, 2.3).EveryFourth(1000, 1.0, 20'000).fine());
}

// ---- The loss stays ----

TEST(DivergenceTest, ALossThatStaysAtThatOfTheFirstStepsIsSeenAfterAThousand) {
  Job job;
  EXPECT_TRUE(job.Steps(999, 2.303).fine());
  ASSERT_FALSE(job.Steps(1, 2.303).fine());
  EXPECT_EQ(job.what(), Divergence::kDoesNotLearn);
  EXPECT_EQ(job.since(), 1);
  EXPECT_THAT(job.seen(), HasSubstr("for 1000 steps: it was 2.303 and is 2.303"));
}

TEST(DivergenceTest, AHigherLossOfTheFirstBatchDoesNotHideThatTheLossStays) {
  Job job;
  EXPECT_TRUE(job.Steps(1, 2.45).Steps(998, 2.303).fine());
  ASSERT_FALSE(job.Steps(1, 2.303).fine());
  EXPECT_EQ(job.what(), Divergence::kDoesNotLearn);
}

TEST(DivergenceTest, ALossThatFallsLateIsARecovery) {
  Job job;
  ASSERT_FALSE(job.Steps(1500, 2.3).fine());
  EXPECT_TRUE(job.Steps(200, 1.5).fine());
}

TEST(DivergenceTest, ALossThatFellAndThenStaysIsNoTrouble) {
  EXPECT_TRUE(Job().Steps(100, 2.3).Steps(100'000, 0.3).fine());
}

TEST(DivergenceTest, ALossThatFallsInTheFirstStepsAndThenStaysIsNoTrouble) {
  EXPECT_TRUE(Job().Steps(1, 2.3).Steps(100'000, 0.01).fine());
}

TEST(DivergenceTest, ALossThatFellAndReturnsToThatOfTheFirstStepsIsSeen) {
  Job job;
  job.Steps(500, 2.3).Steps(64, 2.1);  // too little for the loss to have risen
  EXPECT_TRUE(job.Steps(900, 2.3).fine());
  ASSERT_FALSE(job.Steps(200, 2.3).fine());
  EXPECT_EQ(job.what(), Divergence::kDoesNotLearn);
}

TEST(DivergenceTest, StepsOfAWarmUpAreNotCounted) {
  Job job;
  EXPECT_TRUE(job.WarmingUp(true).Steps(5000, 2.3).fine());
  EXPECT_TRUE(job.WarmingUp(false).Steps(999, 2.3).fine());
  EXPECT_FALSE(job.Steps(1, 2.3).fine());
}

TEST(DivergenceTest, LossesThatAreZeroAreNotJudged) {
  Job job;
  EXPECT_TRUE(job.Steps(5000, 0.0).fine());
  EXPECT_TRUE(job.Steps(999, 1.0).fine());
  ASSERT_FALSE(job.Steps(1, 1.0).fine());
  EXPECT_EQ(job.since(), 5001);
}

TEST(DivergenceTest, RewardsThatAreSparseAreNotJudged) {
  Job job;
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(job.Steps(9, 0.0).Steps(1, i).fine());
}

TEST(DivergenceTest, ALossThatStaysDoesNotHideWorse) {
  Job job;
  ASSERT_FALSE(job.Steps(1000, 2.3).fine());
  job.Steps(147, 7);
  EXPECT_EQ(job.what(), Divergence::kLossRises);
  EXPECT_EQ(job.since(), 1001);
}

// Each of n workers needs about as many gradients as one process.
TEST(DivergenceTest, WhereOneGradientMakesAStepPatienceIsThatOfEachWorker) {
  Job job;
  job.OfWorkers(16);
  EXPECT_TRUE(job.Steps(15'999, 2.303).fine());
  ASSERT_FALSE(job.Steps(1, 2.303).fine());
  EXPECT_EQ(job.what(), Divergence::kDoesNotLearn);
  EXPECT_THAT(job.seen(), HasSubstr("for 16000 steps"));
}

TEST(DivergenceTest, ARareLossOfManyStepsCountsAsOneRound) {
  Job job;
  EXPECT_TRUE(job.EveryFourth(500, 2.303).OfWorkers(4).EveryFourth(499, 2.303).fine());
  EXPECT_FALSE(job.Steps(1, 2.303).fine());
}

// ---- A job that goes on ----

TEST(DivergenceTest, AJobThatGoesOnFromTrainedParametersMayStay) {
  EXPECT_TRUE(Job().From(1001).Steps(10'000, 0.3).fine());
  EXPECT_FALSE(Job().From(1001).Steps(100, 0.3).Steps(200, 2.3).fine());
}

TEST(DivergenceTest, AJobThatWentOnFromTrainedParametersMayStayAfterAnotherRestart) {
  Job second;
  second.From(5000).Steps(100, 0.3);
  Job third;
  third.Restored(second).Steps(100, 0.3);
  EXPECT_TRUE(Job().Restored(third).Steps(10'000, 0.3).fine());
}

TEST(DivergenceTest, AJobThatGoesOnFromItsFirstStepsBeginsAnew) {
  EXPECT_FALSE(Job().From(900).Steps(1000, 2.3).fine());
}

TEST(DivergenceTest, WithTheLossesOfACheckpointARiseIsSeenAtOnce) {
  Job earlier;
  earlier.Steps(500, 2.3).Steps(3000, 0.3);
  Job job;
  EXPECT_TRUE(job.Restored(earlier).Steps(146, 7).fine());
  ASSERT_FALSE(job.Steps(1, 7).fine());
  EXPECT_EQ(job.since(), 3501);
  EXPECT_THAT(job.seen(), HasSubstr("the loss is 7, but was down to 0.3, and 2.3 in the first"));
}

TEST(DivergenceTest, WithTheLossesOfACheckpointOneThatStillStaysIsSeen) {
  Job earlier;
  earlier.Steps(1500, 2.3);
  Job job;
  EXPECT_TRUE(job.Restored(earlier).Steps(999, 2.3).fine());
  ASSERT_FALSE(job.Steps(1, 2.3).fine());
  EXPECT_EQ(job.what(), Divergence::kDoesNotLearn);
}

// ---- What ends the job ----

TEST(DivergenceActionTest, ALossThatStaysEndsNoJobUnlessThatIsAskedFor) {
  EXPECT_FALSE(EndsJob(DivergenceAction::kStop, Divergence::kDoesNotLearn));
  EXPECT_TRUE(EndsJob(DivergenceAction::kStopIfFlat, Divergence::kDoesNotLearn));
}

TEST(DivergenceActionTest, OtherTroubleEndsTheJobUnlessItShallWarn) {
  for (const Divergence what :
       {Divergence::kNotFinite, Divergence::kParametersGrow, Divergence::kLossRises}) {
    EXPECT_FALSE(EndsJob(DivergenceAction::kWarn, what));
    EXPECT_TRUE(EndsJob(DivergenceAction::kStop, what));
    EXPECT_TRUE(EndsJob(DivergenceAction::kStopIfFlat, what));
  }
}

TEST(DivergenceActionTest, OnlyRestoreGoesBackAndNotForALossThatStays) {
  for (const Divergence what :
       {Divergence::kNotFinite, Divergence::kParametersGrow, Divergence::kLossRises}) {
    EXPECT_TRUE(GoesBack(DivergenceAction::kRestore, what));
    EXPECT_FALSE(EndsJob(DivergenceAction::kRestore, what));
    EXPECT_FALSE(GoesBack(DivergenceAction::kWarn, what));
    EXPECT_FALSE(GoesBack(DivergenceAction::kStop, what));
  }
  EXPECT_FALSE(GoesBack(DivergenceAction::kRestore, Divergence::kDoesNotLearn));
  EXPECT_FALSE(EndsJob(DivergenceAction::kRestore, Divergence::kDoesNotLearn));
}

// ---- Advice ----

TEST(AdviceTest, NamesTheLearningRate) {
  AdviceFacts facts;
  facts.learning_rate = 0.03;
  EXPECT_EQ(AdviceFor(Divergence::kLossRises, facts),
            "lower the learning rate, which is 0.03; or bound gradients with --clip-norm");
  facts.learning_rate = 0;
  facts.clips = true;
  EXPECT_EQ(AdviceFor(Divergence::kLossRises, facts), "lower the learning rate of the workers");
}

TEST(AdviceTest, NamesTheRulesForStaleGradientsWhereTheyWouldHelp) {
  AdviceFacts facts;
  facts.learning_rate = 0.03;
  facts.staleness = 5.2;
  facts.auto_helps = true;
  EXPECT_THAT(AdviceFor(Divergence::kDoesNotLearn, facts),
              AllOf(HasSubstr("look at data and labels"), HasSubstr("5.2 steps old"),
                    HasSubstr("--staleness-rules=auto")));
  facts.auto_helps = false;
  EXPECT_THAT(AdviceFor(Divergence::kDoesNotLearn, facts), Not(HasSubstr("--staleness-rules")));
}

}  // namespace
}  // namespace sluice
