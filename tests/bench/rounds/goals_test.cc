#include "tools/bench/rounds/goals.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/bench/rounds/results.h"

namespace sluice::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHeading[] = "goals, by the medians above\n";

TEST(GoalsTest, IsMetByTheRatioOfTheMedians) {
  const Goal goal = {{"ours", 1, 2}, {"theirs", 1, 2}, 1.5};
  const GoalVerdict verdict =
      Judge({goal}, {MakeResult("ours", 1, 2, {9, 2, 1}), MakeResult("theirs", 1, 2, {3, 3, 8})});
  EXPECT_EQ(verdict.text,
            std::string(kHeading) +
                "  met       1.50, at least  1.50              1.0 MB, 2 workers: speed of ours / "
                "theirs\n");
  EXPECT_EQ(verdict.missed, 0u);
}

TEST(GoalsTest, TellsByHowMuchItIsMissed) {
  const Goal goal = {{"ours", 102, 1}, {"theirs", 102, 1}, 12};
  const GoalVerdict verdict =
      Judge({goal}, {MakeResult("ours", 102, 1, {1}), MakeResult("theirs", 102, 1, {9})});
  EXPECT_EQ(verdict.text,
            std::string(kHeading) +
                "  MISSED    9.00, at least 12.00, 25.0 % off  102.0 MB, 1 worker: speed of ours / "
                "theirs\n");
  EXPECT_EQ(verdict.missed, 1u);
}

TEST(GoalsTest, ComparesTheThroughputOfAllWorkers) {
  const Goal goal = {{"ours", 1, 8}, {"ours", 1, 2}, 0.85, 4};
  const GoalVerdict verdict =
      Judge({goal}, {MakeResult("ours", 1, 2, {1}), MakeResult("ours", 1, 8, {5})});
  EXPECT_THAT(verdict.text, HasSubstr("MISSED    0.80, at least  0.85,  5.9 % off  1.0 MB, ours: "
                                      "throughput with 8 workers / with 2"));
}

TEST(GoalsTest, LeavesOutWhatWasNotMeasured) {
  const Goal goal = {{"ours", 1, 1}, {"theirs", 1, 1}, 1};
  const GoalVerdict verdict =
      Judge({goal, goal}, {MakeResult("ours", 1, 1, {1}), MakeResult("theirs", 1, 2, {1}),
                           MakeResult("theirs", 2, 1, {1})});
  EXPECT_EQ(verdict.text, std::string(kHeading) + "  none: this run has none of their cells\n");
  EXPECT_EQ(verdict.missed, 0u);
}

// The run that meets every goal by a hair, with one thing wrong at a time.
std::vector<Result> JustGoodEnough() {
  std::vector<Result> results;
  for (const char* socket : {"sluice-unix", "sluice-tcp"}) {
    for (const uint32_t workers : {1u, 2u, 4u}) {
      results.push_back(MakeResult(socket, 102, workers, {10}));
    }
    results.push_back(MakeResult(socket, 102, 8, {47}));
    results.push_back(MakeResult(socket, 1.7, 1, {1}));
  }
  results.push_back(MakeResult("plain-unix", 102, 1, {7.01}));
  results.push_back(MakeResult("plain-tcp", 102, 1, {7.01}));
  results.push_back(MakeResult("rpc-tcp", 102, 1, {15.01}));
  results.push_back(MakeResult("rpc-tcp", 102, 2, {13.01}));
  results.push_back(MakeResult("rpc-tcp", 102, 4, {13.01}));
  results.push_back(MakeResult("mpi4py-blosc", 102, 1, {120.1}));
  results.push_back(MakeResult("rpc-tcp", 1.7, 1, {1}));
  results.push_back(MakeResult("rpc-shm", 1.7, 1, {1}));
  return results;
}

TEST(GoalsTest, AllOfThemAreDecidedByTheDefaultRun) {
  const GoalVerdict verdict = Judge(AllGoals(), JustGoodEnough());
  EXPECT_THAT(verdict.text, Not(HasSubstr("MISSED")));
  EXPECT_EQ(std::count(verdict.text.begin(), verdict.text.end(), '\n'), 1 + 2 * 8);
}

TEST(GoalsTest, EachIsMissedByARowThatIsALittleFaster) {
  const std::vector<Result> good = JustGoodEnough();
  for (size_t i = 0; i < good.size(); ++i) {
    if (IsSluice(good[i].cell.row)) continue;
    std::vector<Result> results = good;
    for (double& seconds : results[i].measurement.seconds) seconds *= 0.99;
    const bool plain = good[i].cell.row.name.rfind("plain", 0) == 0;
    EXPECT_EQ(Judge(AllGoals(), results).missed, plain ? 1u : 2u) << good[i].cell.row.name;
  }
}

TEST(GoalsTest, ThoseOfSharedMemoryAreInTheRunThatHasTheRow) {
  const GoalVerdict verdict = Judge(
      AllGoals(), {MakeResult("sluice-shm", 102, 1, {10}), MakeResult("plain-unix", 102, 1, {14.1}),
                   MakeResult("rpc-shm", 102, 1, {30.1}), MakeResult("mpi-sendrecv", 102, 1, {9})});
  EXPECT_EQ(std::count(verdict.text.begin(), verdict.text.end(), '\n'), 1 + 3);
  EXPECT_EQ(verdict.missed, 1u);
}

TEST(ElementsTest, OfASizeAreRoundedUp) {
  EXPECT_EQ(ElementsOf(102), 25500000u);
  EXPECT_EQ(ElementsOf(1.7), 425000u);
  EXPECT_EQ(ElementsOf(0.000005), 2u);
}

}  // namespace
}  // namespace sluice::bench
