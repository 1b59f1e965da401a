// The reduction of a step's gradients: their weights, which gradients are left out, and how few of
// them are held at once.

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
using ::testing::FloatEq;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

ShardOptions Reducing(ShardOptions options, Reduction reduction) {
  options.consistency.reduction = reduction;
  return options;
}

absl::StatusOr<PushOutcome> PushSamples(ShardWorld& world, const std::string& name,
                                        uint32_t samples, const Values& gradient) {
  PushHeader header = world.NextHeader(name, world.step());
  header.samples = samples;
  return world.PushAs(header, gradient);
}

// ---- Weights ----

TEST(ReductionTest, WeighsByTheSamplesThatEachWorkerTellsOf) {
  ShardWorld world(Reducing(Sync(2), Reduction::kWeightedMean));
  world.Start({"a", "b"});
  EXPECT_THAT(PushSamples(world, "a", 3, {4, 0, 8}), Accepted(0));
  EXPECT_THAT(PushSamples(world, "b", 1, {8, 4, 0}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-5, -1, -6));
}

TEST(ReductionTest, AddsUpIfAskedTo) {
  ShardWorld world(Reducing(Sync(2), Reduction::kSum));
  world.Start({"a", "b"});
  EXPECT_THAT(PushSamples(world, "a", 3, {4, 0, 8}), Accepted(0));
  EXPECT_THAT(PushSamples(world, "b", 1, {8, 4, 0}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-12, -4, -8));
}

TEST(ReductionTest, DiscountsGradientsByTheirStaleness) {
  ShardOptions options = Async(1);
  options.consistency.discount_stale = true;
  ShardWorld world(options);
  world.Start({"a"});
  EXPECT_THAT(world.Push("a", 0, {4, 8, 16}), Applied(1));
  EXPECT_THAT(world.Push("a", 0, {4, 8, 16}), Applied(2, 1));
  EXPECT_THAT(world.Push("a", 1, {4, 8, 16}), Applied(3, 1));
  EXPECT_THAT(world.Push("a", 0, {4, 8, 16}), Applied(4, 3));
  EXPECT_THAT(world.Parameters(), ElementsAre(-9, -18, -36));
}

TEST(ReductionTest, MeasuresHowStaleTheGradientsWere) {
  ShardWorld world(Bounded(1, 1));
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(2, 1));
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Stale(2, 2));
  const StalenessHistogram staleness = world.shard().Describe().staleness;
  EXPECT_EQ(staleness.counts()[0], 1u);
  EXPECT_EQ(staleness.counts()[1], 1u);
  EXPECT_EQ(staleness.max(), 1u);
}

// ---- Room ----

ShardOptions WithLittleRoom(ShardOptions options) {
  options.max_in_flight_bytes = 1;  // three vectors fit always
  return options;
}

TEST(RoomTest, InOrderOfRanksTheLowestMayComeLast) {
  ShardWorld world(WithLittleRoom(InOrderOfRanks(4)));
  world.Start(kWorkers);
  std::vector<TestStart> starts(4);
  for (size_t worker = 4; worker-- > 0;) {
    starts[worker] = world.BeginAs(world.NextHeader(kWorkers[worker], 0));
  }
  ASSERT_TRUE(starts[3].let_in());
  EXPECT_THAT(world.Finish(starts[3].Take(), kGradients[3]), Accepted(0));
  ASSERT_TRUE(starts[2].let_in());
  EXPECT_THAT(world.Finish(starts[2].Take(), kGradients[2]), Accepted(0));
  EXPECT_FALSE(starts[1].told());
  ASSERT_TRUE(starts[0].let_in());
  EXPECT_THAT(world.Finish(starts[0].Take(), kGradients[0]), Accepted(0));
  ASSERT_TRUE(starts[1].let_in());
  EXPECT_THAT(world.Finish(starts[1].Take(), kGradients[1]), Applied(1));
  EXPECT_EQ(world.Parameters(), AfterStep(kGradients));
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
    world.shard().AbandonPush(start.Take(), Abandoned::kAborted);
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

TEST(RoomTest, APushThatWaitsIsJudgedAgainWhenThereIsRoom) {
  ShardWorld world(WithLittleRoom(Backup(1, 4)));
  world.Start({"a", "b", "c", "d"});
  auto of_b = world.Begin("b", 0);
  auto of_c = world.Begin("c", 0);
  const TestStart of_d = world.BeginAs(world.NextHeader("d", 0));
  EXPECT_FALSE(of_d.told());
  EXPECT_THAT(world.Push("a", 0, {2, 2, 2}), Applied(1));
  EXPECT_THAT(world.Finish(std::move(of_c), {9, 9, 9}), Stale(1, 1));
  ASSERT_TRUE(of_d.told());
  EXPECT_THAT(of_d.answer(), Stale(1, 1));
  EXPECT_THAT(world.Finish(std::move(of_b), {9, 9, 9}), Stale(1, 1));
  EXPECT_EQ(world.Counters(), "4 received: 1 accepted, 3 stale");
}

TEST(RoomTest, APushThatWaitsEndsWithItsSession) {
  ShardWorld world(WithLittleRoom(Sync(4)));
  world.Start({"a", "b", "c", "d"});
  auto of_c = world.Begin("c", 0);
  auto of_d = world.Begin("d", 0);
  const TestStart of_b = world.BeginAs(world.NextHeader("b", 0));
  EXPECT_FALSE(of_b.told());
  ASSERT_THAT(world.Leave("b"), IsOk());
  ASSERT_TRUE(of_b.told());
  EXPECT_THAT(of_b.status(), IsError(Reason::kUnknownSession, HasSubstr("session 2")));
  EXPECT_EQ(of_b.state->cancelled, 0);
  EXPECT_THAT(world.Finish(std::move(of_c), {2, 2, 2}), Accepted(0));
  EXPECT_THAT(world.Finish(std::move(of_d), {2, 2, 2}), Accepted(0));
  EXPECT_EQ(world.Counters(), "3 received: 2 accepted, 1 aborted");
}

TEST(RoomTest, APushThatWaitsEndsWhenTheServerGoesDown) {
  ShardWorld world(WithLittleRoom(Sync(4)));
  world.Start({"a", "b", "c", "d"});
  auto of_c = world.Begin("c", 0);
  auto of_d = world.Begin("d", 0);
  const TestStart of_b = world.BeginAs(world.NextHeader("b", 0));
  EXPECT_FALSE(of_b.told());
  world.shard().Drain();
  EXPECT_THAT(of_b.status(), IsError(Reason::kDraining, HasSubstr("draining")));
  EXPECT_THAT(world.Finish(std::move(of_c), {2, 2, 2}), Accepted(0));
  EXPECT_THAT(world.Finish(std::move(of_d), {2, 2, 2}), Accepted(0));
  EXPECT_EQ(world.Counters(), "3 received: 2 accepted, 1 rejected");
}

TEST(RoomTest, TwoPushesMayArriveAtOnceWhicheverCameFirst) {
  for (const auto& [first, second] : {std::pair("a", "b"), std::pair("b", "a")}) {
    ShardWorld world(WithLittleRoom(Async(1)));
    world.Start({"a", "b"});
    TestStart one = world.BeginAs(world.NextHeader(first, 0));
    TestStart other = world.BeginAs(world.NextHeader(second, 0));
    EXPECT_TRUE(one.let_in());
    EXPECT_TRUE(other.let_in()) << second << " after " << first;
    EXPECT_THAT(world.Finish(one.Take(), {1, 1, 1}), Applied(1));
    EXPECT_THAT(world.Finish(other.Take(), {1, 1, 1}), Applied(2, 1));
  }
}

TEST(RoomTest, AWorkerThatDawdlesInsideLocksNobodyOut) {
  ShardWorld world(WithLittleRoom(Sync(3)));
  world.Start({"a", "b", "c"});
  auto dawdles = world.Begin("a", 0);
  EXPECT_THAT(world.Push("b", 0, {2, 2, 2}), Accepted(0));
  EXPECT_THAT(world.Push("c", 0, {2, 2, 2}), Accepted(0));
  EXPECT_THAT(world.Finish(std::move(dawdles), {2, 2, 2}), Applied(1));
}

// ---- Guards ----

ShardOptions Skipping(ShardOptions options) {
  options.guards.skip_not_finite = true;
  return options;
}

TEST(SkipTest, LeavesOutAGradientThatIsNotFinite) {
  ShardWorld world(Skipping(Sync(2)));
  world.Start({"a", "b"});
  EXPECT_THAT(world.Push("a", 0, {1, kNan, 1}), Skipped(0));
  EXPECT_EQ(world.shard().Describe().current.skipped, 1u);
  EXPECT_FALSE(world.GoOn("a").answered());
  EXPECT_THAT(world.Push("b", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-4, -4, -4));
  EXPECT_THAT(world.Repeat("a", 0, {1, kNan, 1}), Repeated(Disposition::kSkipped, 0));
  EXPECT_EQ(world.Counters(), "3 received: 1 accepted, 1 skipped, 1 duplicate");
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

TEST(SkipTest, MakesNoStepInAsync) {
  ShardWorld world(Skipping(Async(1)));
  world.Start({"a"});
  EXPECT_THAT(world.Push("a", 0, {1, kNan, 1}), Skipped(0));
  EXPECT_EQ(world.step(), 0u);
  EXPECT_TRUE(world.GoOn("a").answered());
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
}

TEST(SkipTest, InBackupTheStepTakesTheNextWorkersGradient) {
  ShardWorld world(Skipping(Backup(2, 3)));
  world.Start({"a", "b", "c"});
  EXPECT_THAT(world.Push("a", 0, {1, kNan, 1}), Skipped(0));
  EXPECT_THAT(world.Push("b", 0, {2, 2, 2}), Accepted(0));
  EXPECT_THAT(world.Push("c", 0, {4, 4, 4}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -3, -3));
}

TEST(SkipTest, IsJudgedAsAnyOtherPush) {
  ShardWorld world(Skipping(Backup(1, 2)));
  world.Start({"a", "b"});
  auto late = world.Begin("b", 0);
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.Finish(std::move(late), {kNan, 1, 1}), Stale(1, 1));
  EXPECT_EQ(world.Counters(), "2 received: 1 accepted, 1 stale");
}

TEST(SkipTest, DoesNotConcernWhatIsWrongOtherwise) {
  ShardWorld world(Skipping(Sync(1)));
  world.Start({"a"});
  EXPECT_THAT(world.Push("a", 0, {1, 1}), IsError(Reason::kBadChunk, HasSubstr("missing")));
  EXPECT_THAT(world.Repeat("a", 0, {1, 1, 1}), Applied(1));
}

TEST(SkipTest, InOrderOfRanksNobodyWaitsForWhoIsLeftOut) {
  ShardWorld world(Skipping(WithLittleRoom(InOrderOfRanks(4))));
  world.Start(kWorkers);
  ASSERT_THAT(world.Push(kWorkers[3], 0, kGradients[3]), Accepted(0));
  ASSERT_THAT(world.Push(kWorkers[0], 0, {kNan, 1, 1}), Skipped(0));
  ASSERT_THAT(world.Push(kWorkers[1], 0, kGradients[1]), Accepted(0));
  ASSERT_THAT(world.Push(kWorkers[2], 0, kGradients[2]), Applied(1));
  EXPECT_EQ(world.Parameters(), AfterStep({kGradients[1], kGradients[2], kGradients[3]}));
}

// torch::nn::utils::clip_grad_norm_'s factor: norm / (5 + 1e-6).
TEST(ClipNormTest, ScalesTheMeanGradientDown) {
  ShardOptions options = Sync(2);
  options.guards.clip_norm = 1;
  ShardWorld world(options);
  world.Start({"a", "b"});
  ASSERT_THAT(world.Push("a", 0, {6, 0, 0}), Accepted(0));
  ASSERT_THAT(world.Push("b", 0, {0, 8, 0}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(FloatEq(-3 / 5.000001), FloatEq(-4 / 5.000001), 0));
}

TEST(MaxPushNormTest, RefusesALargerPushWhichMayBeMadeAgain) {
  ShardOptions options = Skipping(Sync(1));
  options.guards.max_push_norm = 5;
  ShardWorld world(options, LayoutOf({{"w", 2}, {"mean", 1, RangeKind::kStatistic}}));
  world.Start({"a"});
  EXPECT_THAT(world.Push("a", 0, {6, 8, 0}),
              IsError(Reason::kNormTooLarge, HasSubstr("norm is 10, this server takes at most 5")));
  EXPECT_THAT(world.Repeat("a", 0, {3, 4, 1000}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-3, -4, 1000));
  EXPECT_EQ(world.Counters(), "2 received: 1 accepted, 1 rejected");
}

// ---- Optimizers ----

TEST(ScheduleTest, EachStepHasItsLearningRate) {
  ShardOptions options = Async(1);
  options.schedule.warmup_steps = 2;
  options.schedule.kind = ScheduleKind::kStep;
  options.schedule.step_size = 1;
  options.schedule.gamma = 0.25;
  ShardWorld world(options);
  world.Start({"a"});
  float expected = 0;
  uint64_t step = 0;
  for (const float rate : {0.5f, 1.0f, 1.0f, 0.25f, 0.0625f}) {
    EXPECT_EQ(world.shard().Describe().learning_rate, rate);
    ASSERT_THAT(world.Push("a", step, {1, 2, 0}), Applied(step + 1));
    ++step;
    expected -= rate;
    EXPECT_THAT(world.Parameters(), ElementsAre(expected, 2 * expected, 0));
  }
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
