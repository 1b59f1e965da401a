// Parameters that grow, and which steps are suspect.

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/policy/divergence.h"
#include "tests/server/policy/detector_job.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using Job = DetectorJob;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// ---- The parameters grow ----

TEST(ParameterGrowthTest, WithoutLossesTheParametersTell) {
  Job job;
  EXPECT_TRUE(job.Steps(10'000, absl::nullopt).fine());
  ASSERT_FALSE(job.Steps(150, absl::nullopt, 200).fine());
  EXPECT_EQ(job.what(), Divergence::kParametersGrow);
  EXPECT_EQ(job.since(), 10'001);
  EXPECT_THAT(job.seen(), HasSubstr("200 times as large"));
}

TEST(ParameterGrowthTest, ACertainExplosionIsSeenAfterSixteenSteps) {
  Job job;
  EXPECT_TRUE(job.Steps(16, 2.3, 1).Steps(15, 2.4, 20'000).fine());
  ASSERT_FALSE(job.Steps(1, 2.4, 20'000).fine());
  EXPECT_EQ(job.since(), 17);
  EXPECT_FALSE(job.Steps(30, 2.4, 1).fine());  // few good steps are no recovery
  EXPECT_TRUE(job.Steps(30, 2.4, 1).fine());
}

TEST(ParameterGrowthTest, AnExplosionInTheFirstStepIsSeenIfTheLossRisesToo) {
  Job job;
  EXPECT_TRUE(job.Steps(1, 2.3, 1).Steps(15, 1e7, 20'000).fine());
  ASSERT_FALSE(job.Steps(1, 1e7, 20'000).fine());
  EXPECT_EQ(job.what(), Divergence::kParametersGrow);
  EXPECT_EQ(job.since(), 2);
}

TEST(ParameterGrowthTest, ParametersMayBeginVerySmall) {
  for (const double norm : {0.0, 1e-6}) {
    Job job;
    job.Beginning(norm);
    for (int i = 1; i < 900; ++i) EXPECT_TRUE(job.Steps(1, 2.31, 0.01 * i).fine());
  }
}

// A first loss that is low by chance does not tell that training has become worse.
TEST(ParameterGrowthTest, ParametersThatBeginVerySmallMayGrowAfterALuckyFirstLoss) {
  for (const double norm : {0.0, 1e-6}) {
    Job job;
    job.Beginning(norm).Steps(1, 0.1, 0.01);
    for (int i = 1; i < 900; ++i) EXPECT_TRUE(job.Steps(1, 2.3, 0.01 * i).fine());
  }
}

TEST(ParameterGrowthTest, LossesAroundTheFirstOneDoNotHideThatParametersGrow) {
  Job job;
  job.Steps(100, 2.3);
  for (int i = 0; i < 100; ++i) job.Steps(1, 2.2, 200).Steps(1, 2.4, 200);
  ASSERT_FALSE(job.fine());
  EXPECT_EQ(job.what(), Divergence::kParametersGrow);
  EXPECT_EQ(job.since(), 101);
}

TEST(ParameterGrowthTest, ParametersMayGrowWhileTheLossFalls) {
  EXPECT_TRUE(Job().Steps(16, 2.3, 1).Steps(1000, 1.0, 20'000).fine());
}

// ---- Which steps are suspect ----

TEST(SuspicionTest, BeginsWithABadStepAndEndsWithAGoodOneWhereBadOnesAreRare) {
  Job job;
  EXPECT_EQ(job.Steps(500, 2.3).Steps(500, 0.3).suspect_since(), 0);
  EXPECT_EQ(job.Steps(1, 7).suspect_since(), 1001);
  EXPECT_EQ(job.Steps(9, 7).suspect_since(), 1001);
  EXPECT_EQ(job.Steps(1, 0.3).suspect_since(), 0);
  EXPECT_EQ(job.Steps(1, 7).suspect_since(), 1012);
}

TEST(SuspicionTest, LastsWhileHalfOfTheLossesAreBad) {
  Job job;
  job.Steps(500, 2.3).Steps(500, 0.3).Steps(100, 7);
  EXPECT_EQ(job.Swing(1000, 7, 0.3).suspect_since(), 1001);
  EXPECT_TRUE(job.fine());
  EXPECT_EQ(job.Steps(64, 0.3).suspect_since(), 0);
}

TEST(SuspicionTest, ParametersThatGrowAreSuspect) {
  Job job;
  EXPECT_EQ(job.Steps(16, 2.3, 1).suspect_since(), 0);
  EXPECT_EQ(job.Steps(1, 2.4, 200).suspect_since(), 17);
  EXPECT_EQ(job.Steps(1, 2.4, 2).suspect_since(), 0);
}

TEST(SuspicionTest, ALossThatIsBackAtTheFirstOneIsSuspectUntilItFalls) {
  Job job;
  EXPECT_EQ(job.Steps(500, 2.3).Steps(200, 2.0).suspect_since(), 0);
  EXPECT_EQ(job.Steps(90, 2.3).suspect_since(), 0);
  EXPECT_EQ(job.Steps(3000, 2.3).suspect_since(), 791);
  EXPECT_EQ(job.Steps(200, 2.0).suspect_since(), 0);
}

TEST(SuspicionTest, ALossThatNeverFellLeavesNothingBetterToKeep) {
  EXPECT_EQ(Job().Steps(900, 2.3).suspect_since(), 0);
}

TEST(SuspicionTest, LossesThatAreNotFiniteAreSuspect) {
  Job job;
  EXPECT_EQ(job.Steps(100, 2.3).Steps(1, kNan).suspect_since(), 101);
  EXPECT_EQ(job.Steps(1, 2.3).suspect_since(), 0);
}

TEST(SuspicionTest, GradientsThatAreNotFiniteAreSuspect) {
  Job job;
  EXPECT_EQ(job.Steps(100, 2.3).NotFinite(1).suspect_since(), 100);
  EXPECT_EQ(job.Finite(1).suspect_since(), 0);
}

TEST(SuspicionTest, TheFirstOfAllSuspectStepsCounts) {
  Job job;
  EXPECT_EQ(job.Steps(500, 2.3).Steps(500, 0.3).Steps(5, 7).NotFinite(1).suspect_since(), 1001);
}

TEST(SuspicionTest, IsThatOfTheCheckpointUntilManyStepsInARowAreFine) {
  Job earlier;
  earlier.Steps(500, 2.3).Steps(500, 0.3).Steps(20, 7);
  Job job;
  EXPECT_EQ(job.Restored(earlier).suspect_since(), 1001);
  EXPECT_EQ(job.Steps(10, 7).suspect_since(), 1001);
  EXPECT_EQ(job.Steps(63, 0.3).Steps(1, 7).suspect_since(), 1001);
  EXPECT_EQ(job.Steps(63, 0.3).suspect_since(), 1001);
  EXPECT_EQ(job.Steps(1, 0.3).suspect_since(), 0);
}

TEST(SuspicionTest, OfACheckpointEndsAlsoWhereNoLossIsReported) {
  Job earlier;
  earlier.Steps(100, absl::nullopt).NotFinite(1);
  Job job;
  EXPECT_EQ(job.Restored(earlier).Steps(63, absl::nullopt).suspect_since(), 100);
  EXPECT_EQ(job.Steps(1, absl::nullopt).suspect_since(), 0);
}

}  // namespace
}  // namespace sluice
