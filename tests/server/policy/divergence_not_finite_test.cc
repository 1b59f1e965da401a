// Gradients and losses that are not finite.

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/policy/divergence.h"
#include "tests/server/policy/detector_job.h"

namespace sluice {
namespace {

using Job = DetectorJob;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(NotFiniteTest, FifteenGradientsOfOneWorkerAreTrouble) {
  Job job;
  job.Steps(10, 2.3);
  EXPECT_TRUE(job.NotFinite(14).fine());
  ASSERT_FALSE(job.NotFinite(1).fine());
  EXPECT_EQ(job.what(), Divergence::kNotFinite);
  EXPECT_EQ(job.since(), 10);
  EXPECT_EQ(job.seen(), "62 % of the latest gradients had NaN or infinity");
}

TEST(NotFiniteTest, ManyWorkersMayOverflowThreeTimesEach) {
  EXPECT_TRUE(Job().Gradients(false, 3, 1, 32, 32).fine());
  EXPECT_FALSE(Job().Gradients(false, 4, 1, 32, 32).fine());
}

TEST(NotFiniteTest, GradientsThatAreFiniteNowAndThenAreNoRecovery) {
  Job job;
  for (int i = 0; i < 20; ++i) job.NotFinite(9).Finite(1);
  EXPECT_FALSE(job.fine());
}

TEST(NotFiniteTest, FifteenOfSixteenWorkersAreTrouble) {
  Job job;
  for (int i = 0; i < 20; ++i) job.Gradients(false, 1, 1, 15, 16).Gradients(true, 1, 16, 16, 16);
  EXPECT_FALSE(job.fine());
}

TEST(NotFiniteTest, ThreeOfFourWorkersAreTrouble) {
  Job job;
  for (int i = 0; i < 20; ++i) job.Gradients(false, 1, 1, 3, 4).Gradients(true, 1, 4, 4, 4);
  EXPECT_FALSE(job.fine());
}

TEST(NotFiniteTest, OneWorkerOfTwoIsNoTroubleHoweverFastItIs) {
  Job job;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(job.Gradients(false, 10, 1, 1, 2).Gradients(true, 1, 2, 2, 2).fine());
  }
}

TEST(NotFiniteTest, OneWorkerDoesNotSpeakForOthersThatAreSlow) {
  EXPECT_TRUE(Job().Gradients(false, 1000, 1, 1, 2).fine());
}

TEST(NotFiniteTest, LossesAreTroubleToo) {
  Job job;
  EXPECT_TRUE(job.Steps(35, kNan).fine());
  ASSERT_FALSE(job.Steps(1, HUGE_VAL).fine());
  EXPECT_EQ(job.what(), Divergence::kNotFinite);
  EXPECT_EQ(job.since(), 1);
  EXPECT_EQ(job.seen(), "90 % of the latest losses had NaN or infinity");
}

TEST(NotFiniteTest, LossesAndGradientsAreCountedApart) {
  EXPECT_TRUE(Job().Steps(30, kNan).NotFinite(14).fine());
}

TEST(NotFiniteTest, FiniteGradientsDoNotMakeUpForLosses) {
  Job job;
  for (int i = 0; i < 35; ++i) EXPECT_TRUE(job.Steps(1, kNan).Finite(5).fine());
  EXPECT_FALSE(job.Steps(1, kNan).fine());
}

TEST(NotFiniteTest, IsOverWhenSevenOfTenGradientsAreFinite) {
  Job job;
  ASSERT_FALSE(job.NotFinite(15).fine());
  EXPECT_FALSE(job.Finite(11).fine());
  EXPECT_TRUE(job.Finite(1).fine());
}

TEST(NotFiniteTest, TheFirstTroubleStaysUntilItIsOver) {
  Job job;
  job.Steps(64, 2.3).Steps(200, 7).NotFinite(100);
  EXPECT_EQ(job.what(), Divergence::kLossRises);
}

}  // namespace
}  // namespace sluice
