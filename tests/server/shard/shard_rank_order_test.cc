// The order in which a step's gradients are added (tests/scripts/rank_order.txt has more of it),
// and the memory of their sum.

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/rank_order.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/recording_journal.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

// ---- The order of ranks ----

TEST(RankOrderTest, GivesTheSameBitsInWhateverOrderGradientsArrive) {
  std::vector<size_t> arrival(kWorkers.size());
  std::iota(arrival.begin(), arrival.end(), 0);
  do {
    ShardWorld world(InOrderOfRanks(4));
    world.Start(kWorkers);
    for (const size_t worker : arrival) {
      EXPECT_THAT(world.Push(kWorkers[worker], 0, kGradients[worker]), IsOk());
    }
    EXPECT_EQ(world.step(), 1u);
    EXPECT_EQ(world.Parameters(), AfterStep(kGradients));
  } while (std::next_permutation(arrival.begin(), arrival.end()));
}

// Otherwise the test above would prove nothing.
TEST(RankOrderTest, TheOrderOfArrivalGivesOtherBits) {
  ShardWorld world(Sync(4));
  world.Start(kWorkers);
  for (const size_t worker : {1, 3, 0, 2}) {
    ASSERT_THAT(world.Push(kWorkers[worker], 0, kGradients[worker]), IsOk());
  }
  EXPECT_EQ(world.Parameters(),
            AfterStep({kGradients[1], kGradients[3], kGradients[0], kGradients[2]}));
  EXPECT_NE(world.Parameters(), AfterStep(kGradients));
}

// ---- The memory of the sum ----

bool ArrivesInTheSum(const std::unique_ptr<PendingPush>& push) {
  return push->gradient().memory() != nullptr;
}

void BreakOff(ShardWorld& world, std::unique_ptr<PendingPush> push) {
  world.shard().store().AbandonPush(std::move(push), Abandoned::kAborted);
}

// Begins a push that breaks off.
bool WouldArriveInTheSum(ShardWorld& world, const std::string& worker, uint64_t step) {
  std::unique_ptr<PendingPush> push = world.Begin(worker, step);
  const bool arrives = ArrivesInTheSum(push);
  BreakOff(world, std::move(push));
  return arrives;
}

TEST(MemoryOfTheSumTest, TheFirstGradientInTheOrderOfRanksArrivesThere) {
  ShardWorld world(InOrderOfRanks(4));
  world.Start(kWorkers);
  for (uint64_t step = 0; step < 3; ++step) {
    std::vector<std::unique_ptr<PendingPush>> pushes;
    for (const std::string& worker : kWorkers) pushes.push_back(world.Begin(worker, step));
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(ArrivesInTheSum(pushes[i]), i == 0) << i;
    for (const size_t worker : {2, 0, 3, 1}) {
      ASSERT_THAT(world.Finish(std::move(pushes[worker]), kGradients[worker]), IsOk());
    }
    if (step == 0) {
      EXPECT_EQ(world.Parameters(), AfterStep(kGradients));
    }
  }
}

TEST(MemoryOfTheSumTest, NoGradientArrivesThereWithoutAnOrderOrWithoutOthers) {
  ShardWorld in_order_of_arrival(Sync(2));
  in_order_of_arrival.Start({"a", "b"});
  EXPECT_FALSE(WouldArriveInTheSum(in_order_of_arrival, "a", 0));
  ShardWorld alone(InOrderOfRanks(1));
  alone.Start({"a"});
  EXPECT_FALSE(WouldArriveInTheSum(alone, "a", 0));
}

// The journal takes the sum, so that it has memory of its own.
TEST(MemoryOfTheSumTest, NoGradientArrivesThereWithAJournal) {
  RecordingJournal journal;
  ShardWorld world(InOrderOfRanks(2));
  world.shard().durability().EnableJournal(&journal);
  world.Start({"a", "b"});
  EXPECT_FALSE(WouldArriveInTheSum(world, "a", 0));
}

// Each begins while the shard tells that the step before is made.
TEST(MemoryOfTheSumTest, TwoVectorsServeStepsThatFollowAtOnce) {
  ShardWorld world(InOrderOfRanks(2));
  world.Start({"a", "b"});
  std::set<const FloatBuffer*> memory;
  std::unique_ptr<PendingPush> of_a = world.Begin("a", 0);
  for (uint64_t step = 0; step < 4; ++step) {
    memory.insert(of_a->gradient().memory().get());
    ASSERT_THAT(world.Finish(std::move(of_a), {1, 2, 3}), Accepted(step));
    std::unique_ptr<PendingPush> of_b = world.Begin("b", step);
    ASSERT_THAT(of_b->Add(ChunkOf(0, {1, 2, 3})), IsOk());
    world.shard().store().FinishPush(std::move(of_b),
                                     [&](const absl::StatusOr<PushOutcome>& outcome) {
                                       EXPECT_THAT(outcome, Applied(step + 1));
                                       of_a = world.Begin("a", step + 1);
                                     });
  }
  BreakOff(world, std::move(of_a));
  EXPECT_EQ(memory.count(nullptr), 0u);
  EXPECT_EQ(memory.size(), 2u);
}

TEST(MemoryOfTheSumTest, APushThatBreaksOffLeavesItToTheNext) {
  ShardWorld world(InOrderOfRanks(4));
  world.Start(kWorkers);
  std::unique_ptr<PendingPush> torn = world.Begin(kWorkers[0], 0);
  ASSERT_THAT(torn->Add(ChunkOf(0, {7, 7})), IsOk());
  EXPECT_FALSE(WouldArriveInTheSum(world, kWorkers[1], 0));
  BreakOff(world, std::move(torn));
  EXPECT_TRUE(WouldArriveInTheSum(world, kWorkers[0], 0));
}

// It is still arriving when the others' step is made.
TEST(MemoryOfTheSumTest, AWorkerThatIsGoneWritesIntoNobodysSum) {
  ShardWorld world(InOrderOfRanks(4));
  world.Start(kWorkers);
  std::unique_ptr<PendingPush> of_gone = world.Begin(kWorkers[0], 0);
  ASSERT_TRUE(ArrivesInTheSum(of_gone));
  for (const size_t worker : {1, 2, 3}) {
    ASSERT_THAT(world.Push(kWorkers[worker], 0, kGradients[worker]), Accepted(0));
  }
  ASSERT_THAT(world.Leave(kWorkers[0]), IsOk());
  ASSERT_EQ(world.step(), 1u);
  ASSERT_THAT(of_gone->Add(ChunkOf(0, {7, 7, 7})), IsOk());
  EXPECT_EQ(world.Parameters(), AfterStep({kGradients[1], kGradients[2], kGradients[3]}));
  BreakOff(world, std::move(of_gone));
}

// It goes straight to the optimizer, whose output is not its own memory.
TEST(MemoryOfTheSumTest, AGradientThatIsLeftAloneIsApplied) {
  ShardWorld world(InOrderOfRanks(2));
  world.Start({"a", "b"});
  std::unique_ptr<PendingPush> push = world.Begin("a", 0);
  ASSERT_TRUE(ArrivesInTheSum(push));
  ASSERT_THAT(world.Leave("b"), IsOk());
  EXPECT_THAT(world.Finish(std::move(push), {1, 2, 3}), Applied(1));
  EXPECT_THAT(world.Parameters(), ElementsAre(-1, -2, -3));
}

}  // namespace
}  // namespace sluice
