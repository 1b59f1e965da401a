#include "tools/bench/staleness/compute_times.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice::bench {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;

constexpr int kDraws = 100000;

ComputeTimeOptions Parsed(const std::string& distribution, const std::string& slow = "") {
  const auto options = ParseComputeTimes(distribution, slow);
  EXPECT_THAT(options, IsOk());
  return options.value_or(ComputeTimeOptions());
}

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments MomentsOf(const std::string& distribution) {
  ComputeTimes times(Parsed(distribution), 1, 1);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double time = times.Next(0);
    EXPECT_GE(time, 0);
    sum += time;
    squares += time * time;
  }
  const double mean = sum / kDraws;
  return {mean, std::sqrt(squares / kDraws - mean * mean)};
}

TEST(ComputeTimesTest, HaveTheMomentsOfTheirDistribution) {
  EXPECT_EQ(MomentsOf("constant").mean, 1);
  EXPECT_EQ(MomentsOf("constant").deviation, 0);
  EXPECT_THAT(MomentsOf("exponential").mean, DoubleNear(1, 0.02));
  EXPECT_THAT(MomentsOf("exponential").deviation, DoubleNear(1, 0.02));
  EXPECT_THAT(MomentsOf("lognormal:0.5").mean, DoubleNear(1, 0.02));
  EXPECT_THAT(MomentsOf("lognormal:0.5").deviation, DoubleNear(std::sqrt(std::expm1(0.25)), 0.02));
}

TEST(ComputeTimesTest, StallsAreAsLongAndAsRareAsTheyShallBe) {
  ComputeTimes times(Parsed("stalls:0.1:25"), 1, 1);
  int stalls = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double time = times.Next(0);
    ASSERT_TRUE(time == 1 || time == 26) << time;
    stalls += time == 26 ? 1 : 0;
  }
  EXPECT_THAT(stalls, AllOf(Gt(0.095 * kDraws), Lt(0.105 * kDraws)));
}

TEST(ComputeTimesTest, FollowFromTheSeedAndTheWorker) {
  ComputeTimes times(Parsed("exponential"), 2, 1);
  ComputeTimes same(Parsed("exponential"), 2, 1);
  ComputeTimes other(Parsed("exponential"), 2, 2);
  const double first = times.Next(0);
  const double of_other_worker = times.Next(1);
  same.Next(1);
  EXPECT_EQ(same.Next(0), first);
  EXPECT_NE(of_other_worker, first);
  EXPECT_NE(other.Next(0), first);
}

TEST(ComputeTimesTest, TheLastWorkersAreSlow) {
  ComputeTimes times(Parsed("constant", "2:2.5"), 3, 1);
  EXPECT_EQ(times.Next(0), 1);
  EXPECT_EQ(times.Next(1), 2.5);
  EXPECT_EQ(times.Next(2), 2.5);
}

TEST(ComputeTimesTest, NamesWhatCannotBeParsed) {
  for (const char* text :
       {"", "gamma", "lognormal", "lognormal:", "lognormal:0", "lognormal:nan", "lognormal:4",
        "constant:1", "stalls", "stalls:0.1", "stalls:2:1", "stalls:0.1:-1"}) {
    EXPECT_THAT(ParseComputeTimes(text, "").status().message(),
                HasSubstr("expected constant, exponential, lognormal:SIGMA"))
        << text;
  }
  for (const char* text : {"2", "2:", ":2", "-1:2", "2:0", "2:inf", "2:nan", "a:b"}) {
    EXPECT_THAT(ParseComputeTimes("constant", text).status().message(),
                HasSubstr("expected COUNT:FACTOR"))
        << text;
  }
}

}  // namespace
}  // namespace sluice::bench
