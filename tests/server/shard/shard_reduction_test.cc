// Many steps, the sums of a step in the order of ranks, how few gradients are held at once, and
// optimizers. What else a step does with gradients is in tests/scripts/steps.txt.

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/server/shard/rank_order.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// ---- Many steps ----

TEST(ManyStepsTest, InSyncOneIsTakenForEveryRoundOfContributions) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  for (uint64_t step = 0; step < 20; ++step) {
    EXPECT_THAT(world.Push("a", step, {2, 4, 0}), Accepted(step));
    EXPECT_THAT(world.Push("b", step, {4, 0, 0}), Applied(step + 1));
  }
  EXPECT_EQ(world.step(), 20u);
  EXPECT_THAT(world.Parameters(), ElementsAre(-60, -40, 0));
  EXPECT_EQ(world.Counters(), "40 received: 40 accepted");
}

TEST(ManyStepsTest, InAsyncAnyStalenessIsAccepted) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  for (uint64_t step = 0; step < 100; ++step) {
    ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(step + 1, step));
  }
  EXPECT_THAT(world.Parameters(), ElementsAre(-100, -100, -100));
  EXPECT_EQ(world.Counters(), "100 received: 100 accepted");
}

// ---- Room ----

ShardOptions WithLittleRoom(ShardOptions options) {
  options.max_in_flight_bytes = 1;  // three vectors fit always
  return options;
}

TEST(RoomTest, InOrderOfRanksNoOrderOfArrivalDeadlocks) {
  std::vector<size_t> arrival(kWorkers.size());
  std::iota(arrival.begin(), arrival.end(), 0);
  do {
    ShardWorld world(WithLittleRoom(InOrderOfRanks(4)));
    world.Start(kWorkers);
    std::vector<std::pair<size_t, TestStart>> starts;
    for (const size_t worker : arrival) {
      starts.emplace_back(worker, world.BeginAs(world.NextHeader(kWorkers[worker], 0)));
    }
    while (!starts.empty()) {
      const auto let_in = std::find_if(starts.begin(), starts.end(),
                                       [](const auto& start) { return start.second.let_in(); });
      ASSERT_NE(let_in, starts.end()) << "a deadlock";
      EXPECT_THAT(world.Finish(let_in->second.Take(), kGradients[let_in->first]), IsOk());
      starts.erase(let_in);
    }
    EXPECT_EQ(world.Parameters(), AfterStep(kGradients));
  } while (std::next_permutation(arrival.begin(), arrival.end()));
}

// How many of 66 workers with a model of 4 MB may push at once.
size_t AdmittedOf66(ShardOptions options) {
  ShardWorld world(options, ParametersOnly(1 << 20));
  std::vector<std::string> workers;
  for (int i = 0; i < 66; ++i) workers.push_back(absl::StrCat("worker-", i));
  world.Start(workers);
  std::vector<TestStart> starts;
  for (const std::string& worker : workers) {
    starts.push_back(world.BeginAs(world.NextHeader(worker, 0)));
  }
  size_t admitted = 0;
  world.shard().Drain();  // ends those that wait
  for (TestStart& start : starts) {
    if (!start.let_in()) continue;
    ++admitted;
    world.shard().store().AbandonPush(start.Take(), Abandoned::kAborted);
  }
  return admitted;
}

TEST(RoomTest, WhereAmpleIsEnough64GradientsAreInFlight) {
  ShardOptions options = InOrderOfRanks(66);
  EXPECT_EQ(AdmittedOf66(options), 66u);
  options.ample_in_flight = true;
  EXPECT_EQ(AdmittedOf66(options), 64u);
  options.max_in_flight_bytes = 20 << 20;
  EXPECT_EQ(AdmittedOf66(options), 5u);
}

// The step would be made without those that wait.
TEST(RoomTest, AllArriveWhereAStepMayProceedInOrderOfRanks) {
  ShardOptions options = InOrderOfRanks(66);
  options.ample_in_flight = true;
  options.consistency.max_step_wait = absl::Seconds(5);
  options.consistency.on_max_step_wait = StepWaitAction::kEvict;
  EXPECT_EQ(AdmittedOf66(options), 64u);
  options.consistency.on_max_step_wait = StepWaitAction::kProceed;
  EXPECT_EQ(AdmittedOf66(options), 66u);
  options.consistency.order = ReductionOrder::kArrival;
  EXPECT_EQ(AdmittedOf66(options), 64u);
}

// ---- Guards ----

ShardOptions Skipping(ShardOptions options) {
  options.guards.skip_not_finite = true;
  return options;
}

TEST(SkipTest, GoesOnWithUnchangedParametersIfAllAreLeftOut) {
  SgdOptions sgd = PlainSgd();
  sgd.weight_decay = 0.5;
  ShardWorld world(Skipping(Sync(2)), ParametersOnly(3), sgd);
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Join("b"), IsOk());
  ASSERT_THAT(world.Initialize({1, 2, 3}), IsOk());
  EXPECT_THAT(world.Push("a", 0, {kNan, 1, 1}), Skipped(0));
  const TestPull of_a = world.GoOn("a");
  EXPECT_THAT(world.Push("b", 0, {1, 1, kNan}), Skipped(0));
  EXPECT_EQ(of_a.step(), 1u);
  EXPECT_THAT(of_a.values(), ElementsAre(1, 2, 3));
  EXPECT_EQ(world.Counters(), "2 received: 2 skipped");
}

// ---- Optimizers ----

TEST(OptimizerTest, IsTheOneThatTheWorkersBrought) {
  SgdOptions sgd;
  sgd.learning_rate = 0.5;
  sgd.momentum = 0.5;
  ShardWorld world(Async(1), ParametersOnly(1), sgd);
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2));
  ASSERT_THAT(world.Push("a", 1, {4}), Applied(2));
  EXPECT_THAT(world.Parameters(), ElementsAre(-2 - 0.5 * (0.5 * 4 + 4)));
}

AveragingOptions Averaging(double moving_rate) {
  AveragingOptions options;
  options.moving_rate = moving_rate;
  return options;
}

TEST(AveragingTest, WithARateOfOneTheMeanReplacesTheParametersToTheBit) {
  ShardWorld world(Sync(3), ParametersOnly(3), Averaging(1));
  for (const char* name : {"a", "b", "c"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize({1e10f, 7, -3}), IsOk());
  ASSERT_THAT(world.Push("a", 0, {0.1f, 1, 5}), Accepted(0));
  ASSERT_THAT(world.Push("b", 0, {0.2f, 1, 5}), Accepted(0));
  ASSERT_THAT(world.Push("c", 0, {0.7f, 1, 6}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre((0.1f + 0.2f + 0.7f) / 3, 1, 16.0f / 3));
  EXPECT_EQ(world.shard().Describe().learning_rate, 0);
}

TEST(AveragingTest, BelowOneTheParametersMoveTowardsTheMean) {
  ShardWorld world(Sync(2), ParametersOnly(3), Averaging(0.5));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Join("b"), IsOk());
  ASSERT_THAT(world.Initialize({8, 0, 3}), IsOk());
  ASSERT_THAT(world.Push("a", 0, {4, 4, 3}), Accepted(0));
  ASSERT_THAT(world.Push("b", 0, {0, 0, 3}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(5, 1, 3));
}

}  // namespace
}  // namespace sluice
