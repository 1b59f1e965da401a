#include "worker/data/batch_deal.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using Launches = std::vector<BatchDeal::Launch>;
using Blocks = std::vector<std::pair<int64_t, int64_t>>;  // (epoch, block)

Blocks BlocksOf(int64_t blocks, int64_t index, int64_t workers, const Launches& earlier,
                int64_t batches) {
  const BatchDeal deal(blocks, index, workers, earlier);
  Blocks dealt;
  for (int64_t batch = 0; batch < batches; ++batch) {
    const BatchDeal::Block block = deal.At(batch);
    dealt.emplace_back(block.epoch, block.block);
  }
  return dealt;
}

// How often each block is taken: by the workers of each launch, and by `workers` until the end of
// the epochs.
std::map<std::pair<int64_t, int64_t>, int> Taken(int64_t blocks, const Launches& launches,
                                                 int64_t workers, int64_t epochs) {
  std::map<std::pair<int64_t, int64_t>, int> taken;
  Launches earlier;
  const auto take = [&](int64_t of, int64_t index, int64_t batches) {
    for (const auto& block : BlocksOf(blocks, index, of, earlier, batches)) ++taken[block];
  };
  for (const BatchDeal::Launch& launch : launches) {
    const auto of = static_cast<int64_t>(launch.size());
    for (int64_t index = 0; index < of; ++index) take(of, index, launch[index]);
    earlier.push_back(launch);
  }
  for (int64_t index = 0; index < workers; ++index) {
    take(workers, index, BatchDeal(blocks, index, workers, earlier).Count(epochs));
  }
  return taken;
}

// How many blocks of the epochs are never taken, and how many twice.
std::pair<int64_t, int64_t> Amiss(int64_t blocks, const Launches& launches, int64_t workers,
                                  int64_t epochs) {
  const auto taken = Taken(blocks, launches, workers, epochs);
  const auto twice =
      std::count_if(taken.begin(), taken.end(), [](const auto& block) { return block.second > 1; });
  return {blocks * epochs - static_cast<int64_t>(taken.size()), twice};
}

TEST(BatchDealTest, AJobThatNeverChangedTakesOneBlockOfEachStep) {
  EXPECT_THAT(BlocksOf(7, 1, 3, {}, 4), ElementsAre(std::make_pair(0, 1), std::make_pair(0, 4),
                                                    std::make_pair(1, 1), std::make_pair(1, 4)));
  EXPECT_EQ(BatchDeal(7, 1, 3, {}).Count(5), 10);
  EXPECT_EQ(BatchDeal(7, 1, 3, {}).Count(0), 0);
}

// 96 rows in batches of 4, two epochs, stopped after 7 steps.
TEST(BatchDealTest, NoRowIsLeftOutOrTakenTwiceWithAnotherNumberOfWorkers) {
  for (const int64_t workers : {1, 2, 3, 4, 6}) {
    EXPECT_EQ(Amiss(24, {{7, 7}}, workers, 2), std::make_pair(int64_t{0}, int64_t{0})) << workers;
    EXPECT_EQ(Amiss(24, {{4, 4, 4, 4}}, workers, 2), std::make_pair(int64_t{0}, int64_t{0}));
  }
}

TEST(BatchDealTest, ASecondChangeGoesOnFromTheFirst) {
  const Launches launches = {{7, 7}, {2, 2, 2, 2}, {5}};
  EXPECT_EQ(Amiss(24, launches, 3, 2), std::make_pair(int64_t{0}, int64_t{0}));
  EXPECT_EQ(Amiss(24, {{12, 12}}, 4, 2), std::make_pair(int64_t{0}, int64_t{0}));  // an epoch
  EXPECT_EQ(Amiss(24, {{24, 24}}, 4, 2), std::make_pair(int64_t{0}, int64_t{0}));  // all
  EXPECT_EQ(Amiss(24, {{0, 0}}, 4, 2), std::make_pair(int64_t{0}, int64_t{0}));    // nothing
}

TEST(BatchDealTest, WorkersThatWereApartLeaveWhatTheyDidNotTake) {
  EXPECT_EQ(Amiss(24, {{3, 17}}, 4, 2), std::make_pair(int64_t{0}, int64_t{0}));
  EXPECT_EQ(Amiss(24, {{0, 9, 1}}, 2, 2), std::make_pair(int64_t{0}, int64_t{0}));
  EXPECT_EQ(Amiss(24, {{3, 17}, {1, 8, 0, 2}}, 3, 3), std::make_pair(int64_t{0}, int64_t{0}));
}

// Of 25 blocks two workers deal 24. What remains of their epoch is what they deal; five workers
// deal all of the next.
TEST(BatchDealTest, DropsTheRemainderOfEachEpochAsTheLaunchThatBeganIt) {
  EXPECT_EQ(Amiss(25, {{7, 7}}, 5, 3), std::make_pair(int64_t{1}, int64_t{0}));
  EXPECT_EQ(Amiss(25, {{2, 2, 2, 2, 2}}, 2, 3), std::make_pair(int64_t{2}, int64_t{0}));
}

// The 34 blocks that are left go round, so a step takes the end of one epoch and the begin of the
// next.
TEST(BatchDealTest, AWorkerHasAtMostOneBatchMoreThanAnother) {
  const Launches launches = {{7, 7}};
  EXPECT_EQ(BatchDeal(24, 0, 4, launches).Count(2), 9);
  EXPECT_EQ(BatchDeal(24, 1, 4, launches).Count(2), 9);
  EXPECT_EQ(BatchDeal(24, 3, 4, launches).Count(2), 8);
  EXPECT_THAT(BlocksOf(24, 2, 4, launches, 4),
              ElementsAre(std::make_pair(0, 16), std::make_pair(0, 20), std::make_pair(1, 0),
                          std::make_pair(1, 4)));
}

}  // namespace
}  // namespace sluice
