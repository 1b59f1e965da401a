#include "server/policy/norm_growth.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "gtest/gtest.h"

namespace sluice {
namespace {

// The largest growth in so many steps, after which the norm is norm(step).
double MostGrowth(int steps, const std::function<double(double step)>& norm) {
  NormGrowth growth;
  growth.Begin(norm(0));
  double most = 0;
  for (int step = 1; step <= steps; ++step) {
    growth.Add(norm(step));
    most = std::max(most, growth.growth());
  }
  return most;
}

TEST(NormGrowthTest, StepsOfOneLengthGrowByAFactorOfFourAtMost) {
  EXPECT_LE(MostGrowth(100'000, [](double step) { return step; }), 4);
}

TEST(NormGrowthTest, MomentumWithWarmUpGrowsByAFactorOf64AtMost) {
  EXPECT_LE(MostGrowth(100'000, [](double step) { return step * step * step; }), 64);
}

TEST(NormGrowthTest, ParametersThatGrowAThousandfoldOverATrainingDoNotCount) {
  EXPECT_LE(MostGrowth(100'000, [](double step) { return 1 + step / 100; }), NormGrowth::kMost);
}

TEST(NormGrowthTest, ExponentialGrowthIsSeenWheneverItBegins) {
  for (const int begin : {0, 10, 1000, 50'000}) {
    const double most = MostGrowth(begin + 200, [begin](double step) {
      return step < begin ? 1 : std::pow(1.1, step - begin);
    });
    EXPECT_GT(most, NormGrowth::kMost) << "from step " << begin;
  }
}

TEST(NormGrowthTest, OneStepIsEnoughAfterTheFirstSixteen) {
  EXPECT_EQ(MostGrowth(17, [](double step) { return step < 17 ? 1 : 201; }), 201);
  EXPECT_EQ(MostGrowth(16, [](double step) { return step < 16 ? 1 : 201; }), 1);
}

TEST(NormGrowthTest, TheFirstStepsOfVerySmallParametersAreTheMeasureAndNotThese) {
  EXPECT_LE(MostGrowth(100'000, [](double step) { return 1e-6 + step; }), 4);
}

TEST(NormGrowthTest, TheFirstSixteenStepsAreComparedWithTheBeginning) {
  NormGrowth growth;
  growth.Begin(2);
  growth.Add(500);
  EXPECT_EQ(growth.growth(), 1);
  EXPECT_EQ(growth.early_growth(), 250);
  growth.Add(4);
  EXPECT_EQ(growth.early_growth(), 2);
}

TEST(NormGrowthTest, LaterGrowthIsNotThatOfTheFirstSteps) {
  NormGrowth growth;
  growth.Begin(2);
  for (int step = 0; step < 16; ++step) growth.Add(4);
  growth.Add(500);
  EXPECT_EQ(growth.early_growth(), 2);
}

TEST(NormGrowthTest, ParametersThatBeginNearZeroAreNoMeasure) {
  NormGrowth growth;
  growth.Begin(1e-6);
  growth.Add(0.5);
  EXPECT_EQ(growth.early_growth(), 1);
  growth.Add(1);
  EXPECT_EQ(growth.early_growth(), 2);
}

TEST(NormGrowthTest, ALargeNormBecomesTheMeasureOnlyAfterAThousandSteps) {
  NormGrowth growth;
  growth.Begin(1);
  for (int step = 0; step < 16; ++step) growth.Add(1);
  for (int step = 0; step < 1000; ++step) {
    growth.Add(500);
    EXPECT_EQ(growth.growth(), 500);
  }
  growth.Add(500);
  EXPECT_EQ(growth.growth(), 1);
}

TEST(NormGrowthTest, ParametersThatBeginAtZeroAreMeasuredFromTheirFirstSteps) {
  EXPECT_LE(MostGrowth(100'000, [](double step) { return std::max(0.0, step - 1000); }), 4);
  EXPECT_EQ(MostGrowth(100, [](double) { return 0; }), 1);
}

}  // namespace
}  // namespace sluice
