#include "server/policy/divergence.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A detector that is told of steps in order.
class Job {
 public:
  explicit Job(bool resumed = false) {
    if (resumed) detector_.Resume();
  }

  Job& Steps(int count, absl::optional<double> loss, double norm = 1) {
    for (int i = 0; i < count; ++i) {
      StepReport report;
      report.step = step_ = step_.Next();
      report.loss = loss;
      report.norm_before = norm_;
      report.norm = norm_ = norm;
      report.warms_up = warms_up_;
      detector_.OnStep(report);
    }
    return *this;
  }
  // Of four steps, only the first has a loss.
  Job& EveryFourth(int count, double loss, double norm = 1) {
    for (int i = 0; i < count; ++i) Steps(1, loss, norm).Steps(3, absl::nullopt, norm);
    return *this;
  }
  // With parameters of this norm.
  Job& Beginning(double norm) {
    norm_ = norm;
    return *this;
  }
  Job& WarmingUp(bool warms_up) {
    warms_up_ = warms_up;
    return *this;
  }
  Job& NotFinite(uint64_t gradients, uint32_t workers = 1) {
    detector_.OnNotFinite(step_, gradients, workers);
    return *this;
  }

  bool fine() const { return !detector_.verdict().has_value(); }
  Divergence what() const { return detector_.verdict().value().what; }
  uint64_t since() const { return detector_.verdict().value().since.value(); }
  std::string seen() const { return detector_.verdict().value().seen; }
  bool suspicious(DivergenceAction action = DivergenceAction::kStop) const {
    return detector_.Suspects(action);
  }

 private:
  DivergenceDetector detector_;
  Step step_;
  double norm_ = 1;
  bool warms_up_ = false;
};

// ---- The loss rises ----

TEST(DivergenceTest, ALossThatRisesForManyStepsIsSeenSinceItsFirstBadStep) {
  Job job;
  job.Steps(500, 2.3).Steps(500, 0.3);
  EXPECT_TRUE(job.Steps(146, 2.4).fine());
  EXPECT_TRUE(job.suspicious());
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
  EXPECT_FALSE(job.Steps(100, 0.3).suspicious());
}

TEST(DivergenceTest, ALossThatRisesFromTheBeginningIsSeen) {
  Job job;
  ASSERT_FALSE(job.Steps(64, 2.3).Steps(200, 7).fine());
  EXPECT_EQ(job.what(), Divergence::kLossRises);
}

TEST(DivergenceTest, ARiseIsSuspiciousAfterTenBadSteps) {
  Job job;
  EXPECT_FALSE(job.Steps(500, 2.3).Steps(500, 0.3).Steps(9, 7).suspicious());
  EXPECT_TRUE(job.Steps(1, 7).suspicious());
  EXPECT_FALSE(job.suspicious(DivergenceAction::kWarn));
  EXPECT_FALSE(job.Steps(1, 0.3).suspicious());
}

TEST(DivergenceTest, OneVeryLowLossDoesNotMakeLaterOnesBad) {
  EXPECT_TRUE(Job().Steps(500, 2.3).Steps(500, 0.3).Steps(1, -1e30).Steps(1000, 0.4).fine());
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
  EXPECT_TRUE(job.EveryFourth(15, kNan).fine());
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

TEST(DivergenceTest, AJobThatGoesOnFromTrainedParametersMayStay) {
  EXPECT_TRUE(Job(true).Steps(10'000, 0.3).fine());
  EXPECT_FALSE(Job(true).Steps(100, 0.3).Steps(200, 2.3).fine());
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

TEST(DivergenceTest, ALossThatIsBackAtTheFirstOneIsSuspiciousWhereThatEndsTheJob) {
  Job job;
  job.Steps(500, 2.3).Steps(200, 2.0).Steps(150, 2.3);
  EXPECT_FALSE(job.suspicious(DivergenceAction::kStopIfFlat));
  job.Steps(10, 2.3);
  EXPECT_TRUE(job.suspicious(DivergenceAction::kStopIfFlat));
  EXPECT_FALSE(job.suspicious(DivergenceAction::kStop));
}

TEST(DivergenceTest, WithoutFurtherLossesAFlatOneIsNotSuspiciousForEver) {
  Job job;
  job.Steps(500, 2.3).Steps(200, 2.0).Steps(300, 2.3);
  EXPECT_TRUE(job.Steps(999, absl::nullopt).suspicious(DivergenceAction::kStopIfFlat));
  EXPECT_FALSE(job.Steps(1, absl::nullopt).suspicious(DivergenceAction::kStopIfFlat));
}

TEST(DivergenceTest, ALossThatNeverFellLeavesNothingBetterToKeep) {
  EXPECT_FALSE(Job().Steps(900, 2.3).suspicious(DivergenceAction::kStopIfFlat));
}

TEST(DivergenceTest, ALossThatStaysDoesNotHideWorse) {
  Job job;
  ASSERT_FALSE(job.Steps(1000, 2.3).fine());
  job.Steps(147, 7);
  EXPECT_EQ(job.what(), Divergence::kLossRises);
  EXPECT_EQ(job.since(), 1001);
}

// ---- The parameters grow ----

TEST(DivergenceTest, WithoutLossesTheParametersTell) {
  Job job;
  EXPECT_TRUE(job.Steps(10'000, absl::nullopt).fine());
  ASSERT_FALSE(job.Steps(150, absl::nullopt, 200).fine());
  EXPECT_EQ(job.what(), Divergence::kParametersGrow);
  EXPECT_EQ(job.since(), 10'001);
  EXPECT_THAT(job.seen(), HasSubstr("200 times as large"));
}

TEST(DivergenceTest, ParametersThatGrowAreSuspiciousAtOnce) {
  Job job;
  EXPECT_FALSE(job.Steps(16, 2.3, 1).suspicious());
  EXPECT_TRUE(job.Steps(1, 2.4, 200).suspicious());
  EXPECT_FALSE(job.Steps(1, 2.4, 2).suspicious());
}

TEST(DivergenceTest, ACertainExplosionIsSeenAfterSixteenSteps) {
  Job job;
  EXPECT_TRUE(job.Steps(16, 2.3, 1).Steps(15, 2.4, 20'000).fine());
  ASSERT_FALSE(job.Steps(1, 2.4, 20'000).fine());
  EXPECT_EQ(job.since(), 17);
  EXPECT_FALSE(job.Steps(30, 2.4, 1).fine());  // few good steps are no recovery
  EXPECT_TRUE(job.Steps(30, 2.4, 1).fine());
}

TEST(DivergenceTest, AnExplosionInTheFirstStepIsSeenIfTheLossRisesToo) {
  Job job;
  EXPECT_TRUE(job.Steps(1, 2.3, 1).Steps(15, 1e7, 20'000).fine());
  ASSERT_FALSE(job.Steps(1, 1e7, 20'000).fine());
  EXPECT_EQ(job.what(), Divergence::kParametersGrow);
  EXPECT_EQ(job.since(), 2);
}

TEST(DivergenceTest, ParametersMayBeginVerySmall) {
  for (const double norm : {0.0, 1e-6}) {
    Job job;
    job.Beginning(norm);
    for (int i = 1; i < 900; ++i) EXPECT_TRUE(job.Steps(1, 2.31, 0.01 * i).fine());
  }
}

// A first loss that is low by chance does not tell that training has become worse.
TEST(DivergenceTest, ParametersThatBeginVerySmallMayGrowAfterALuckyFirstLoss) {
  for (const double norm : {0.0, 1e-6}) {
    Job job;
    job.Beginning(norm).Steps(1, 0.1, 0.01);
    for (int i = 1; i < 900; ++i) EXPECT_TRUE(job.Steps(1, 2.3, 0.01 * i).fine());
  }
}

TEST(DivergenceTest, LossesAroundTheFirstOneDoNotHideThatParametersGrow) {
  Job job;
  job.Steps(100, 2.3);
  for (int i = 0; i < 100; ++i) job.Steps(1, 2.2, 200).Steps(1, 2.4, 200);
  ASSERT_FALSE(job.fine());
  EXPECT_EQ(job.what(), Divergence::kParametersGrow);
  EXPECT_EQ(job.since(), 101);
}

TEST(DivergenceTest, ParametersMayGrowWhileTheLossFalls) {
  EXPECT_TRUE(Job().Steps(16, 2.3, 1).Steps(1000, 1.0, 20'000).fine());
}

// ---- Numbers that are not finite ----

TEST(DivergenceTest, GradientsThatAreNotFiniteAreCountedInARow) {
  Job job;
  job.Steps(1, 2.3);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(job.NotFinite(15).Steps(1, 2.3).fine());
  ASSERT_FALSE(job.NotFinite(15).NotFinite(1).fine());
  EXPECT_EQ(job.what(), Divergence::kNotFinite);
  EXPECT_EQ(job.since(), 11);
  EXPECT_THAT(job.seen(), HasSubstr("the last 16 gradients had NaN or infinity"));
}

TEST(DivergenceTest, ManyWorkersMayOverflowFourTimesEach) {
  EXPECT_TRUE(Job().NotFinite(127, 32).fine());
  EXPECT_FALSE(Job().NotFinite(128, 32).fine());
}

TEST(DivergenceTest, LossesThatAreNotFiniteAreSeen) {
  Job job;
  EXPECT_TRUE(job.Steps(15, kNan).fine());
  ASSERT_FALSE(job.Steps(1, HUGE_VAL).fine());
  EXPECT_THAT(job.seen(), HasSubstr("the last 16 losses had NaN"));
}

TEST(DivergenceTest, LossesAndGradientsThatAreNotFiniteAreCountedApart) {
  Job job;
  EXPECT_TRUE(job.Steps(15, kNan).NotFinite(15).fine());
  EXPECT_TRUE(job.Steps(1, 2.3).NotFinite(15).fine());
  EXPECT_FALSE(job.NotFinite(1).fine());
}

TEST(DivergenceTest, FiniteGradientsDoNotMakeUpForLossesThatAreNotFinite) {
  Job job;
  for (int i = 0; i < 15; ++i) EXPECT_TRUE(job.Steps(1, kNan).Steps(5, absl::nullopt).fine());
  EXPECT_FALSE(job.Steps(1, kNan).fine());
}

TEST(DivergenceTest, FiniteStepsAreARecovery) {
  Job job;
  ASSERT_FALSE(job.Steps(1, 2.3).NotFinite(16).fine());
  EXPECT_FALSE(job.Steps(63, 2.3).fine());
  EXPECT_TRUE(job.Steps(1, 2.3).fine());
}

TEST(DivergenceTest, TheFirstTroubleStaysUntilItIsOver) {
  Job job;
  job.Steps(64, 2.3).Steps(200, 7).NotFinite(100);
  EXPECT_EQ(job.what(), Divergence::kLossRises);
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

TEST(AdviceTest, NamesTheRulesForStaleGradientsWhereTheyAreOff) {
  AdviceFacts facts;
  facts.learning_rate = 0.03;
  facts.staleness = 5.2;
  EXPECT_THAT(AdviceFor(Divergence::kDoesNotLearn, facts),
              AllOf(HasSubstr("look at data and labels"), HasSubstr("5.2 steps old"),
                    HasSubstr("--staleness-rules=auto")));
  facts.stale_rules = true;
  EXPECT_THAT(AdviceFor(Divergence::kDoesNotLearn, facts), Not(HasSubstr("--staleness-rules")));
}

}  // namespace
}  // namespace sluice
