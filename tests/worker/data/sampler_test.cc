#include "worker/data/sampler.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Rows = std::vector<int64_t>;

SamplerOptions Options(int64_t dataset_size, int batch_size, int worker_index = 0, int workers = 1,
                       uint64_t seed = 1) {
  return {dataset_size, batch_size, worker_index, workers, seed};
}

void Append(const Rows& rows, Rows& all) { all.insert(all.end(), rows.begin(), rows.end()); }

// All rows of one epoch, step by step and within a step worker by worker.
Rows Epoch(const SamplerOptions& options, int64_t epoch) {
  std::vector<Sampler> samplers;
  for (int worker = 0; worker < options.workers; ++worker) {
    SamplerOptions own = options;
    own.worker_index = worker;
    samplers.emplace_back(own);
  }
  Rows rows;
  for (int64_t step = 0; step < samplers[0].steps_per_epoch(); ++step) {
    for (Sampler& sampler : samplers) Append(sampler.Batch(epoch, step), rows);
  }
  return rows;
}

Rows Sorted(Rows rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

Rows UpTo(int64_t size) {
  Rows rows(size);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

TEST(SamplerTest, EveryRowIsTakenOnceAnEpoch) {
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    EXPECT_EQ(Sorted(Epoch(Options(120, 5, 0, 4), epoch)), UpTo(120));
  }
}

TEST(SamplerTest, DropsTheRemainder) {
  Sampler sampler(Options(65, 4, 0, 4));
  EXPECT_EQ(sampler.steps_per_epoch(), 4);
  const Rows rows = Sorted(Epoch(Options(65, 4, 0, 4), 0));
  EXPECT_EQ(rows.size(), 64u);
  EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end()), rows.end());
}

TEST(SamplerTest, WorkersTogetherSeeWhatOneWorkerSeesInTheSameOrder) {
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const Rows alone = Epoch(Options(1000, 24), epoch);
    EXPECT_EQ(alone.size(), 984u);
    EXPECT_EQ(Epoch(Options(1000, 12, 0, 2), epoch), alone);
    EXPECT_EQ(Epoch(Options(1000, 8, 0, 3), epoch), alone);
    EXPECT_EQ(Epoch(Options(1000, 1, 0, 24), epoch), alone);
  }
}

TEST(SamplerTest, EachStepOfOneWorkerIsCutIntoBlocksByIndex) {
  const Rows whole = Sampler(Options(100, 6)).Batch(2, 7);
  EXPECT_EQ(Sampler(Options(100, 2, 0, 3)).Batch(2, 7), Rows(whole.begin(), whole.begin() + 2));
  EXPECT_EQ(Sampler(Options(100, 2, 1, 3)).Batch(2, 7), Rows(whole.begin() + 2, whole.begin() + 4));
  EXPECT_EQ(Sampler(Options(100, 2, 2, 3)).Batch(2, 7), Rows(whole.begin() + 4, whole.end()));
}

TEST(SamplerTest, ReshufflesInEveryEpoch) {
  EXPECT_NE(Epoch(Options(100, 10), 0), Epoch(Options(100, 10), 1));
  EXPECT_NE(Epoch(Options(100, 10), 1), Epoch(Options(100, 10), 2));
}

TEST(SamplerTest, SameSeedGivesSameOrderAndAnotherSeedAnother) {
  EXPECT_EQ(Epoch(Options(100, 10, 0, 1, 5), 3), Epoch(Options(100, 10, 0, 1, 5), 3));
  EXPECT_NE(Epoch(Options(100, 10, 0, 1, 5), 3), Epoch(Options(100, 10, 0, 1, 6), 3));
}

TEST(SamplerTest, GivesTheSameRowsInWhateverOrderItIsAsked) {
  Sampler sampler(Options(100, 10));
  const Rows early = sampler.Batch(0, 3);
  const Rows late = sampler.Batch(9, 3);
  EXPECT_EQ(sampler.Batch(0, 3), early);
  EXPECT_EQ(Sampler(Options(100, 10)).Batch(9, 3), late);
}

TEST(SamplerTest, GivesNoRowsOutsideTheEpoch) {
  Sampler sampler(Options(65, 4, 3, 4));
  EXPECT_EQ(sampler.Batch(0, 3).size(), 4u);
  EXPECT_THAT(sampler.Batch(0, 4), IsEmpty());
  EXPECT_THAT(sampler.Batch(0, -1), IsEmpty());
}

TEST(SamplerTest, ADatasetOfOneRowIsOneStep) {
  Sampler sampler(Options(1, 1));
  EXPECT_EQ(sampler.steps_per_epoch(), 1);
  EXPECT_THAT(sampler.Batch(0, 0), ElementsAre(0));
}

// Every first row of three comes up about as often: 3000 draws, five standard deviations.
TEST(SamplerTest, FavoursNoRow) {
  std::vector<int> first(3);
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    ++first[Sampler(Options(3, 1, 0, 1, seed)).Batch(0, 0)[0]];
  }
  for (int count : first) EXPECT_NEAR(count, 1000, 130);
}

// The order is part of the contract: these numbers come from another program, written from the
// header's words and the C++ standard's, and must never change.
TEST(SamplerOrderTest, IsFixedForAllTime) {
  EXPECT_THAT(Epoch(Options(10, 1), 0), ElementsAre(2, 1, 8, 9, 6, 7, 3, 5, 0, 4));
  EXPECT_THAT(Epoch(Options(10, 1), 1), ElementsAre(4, 6, 2, 3, 7, 9, 0, 8, 5, 1));
  EXPECT_THAT(Epoch(Options(10, 1, 0, 1, 2), 0), ElementsAre(0, 2, 1, 7, 5, 9, 8, 3, 6, 4));
}

TEST(SamplerOrderTest, UsesTheHighBitsOfSeedAndEpoch) {
  const int64_t high = int64_t{1} << 32;
  EXPECT_THAT(Epoch(Options(10, 1, 0, 1, high), 0), ElementsAre(6, 1, 9, 2, 4, 5, 3, 0, 7, 8));
  EXPECT_THAT(Epoch(Options(10, 1), high), ElementsAre(3, 8, 2, 0, 7, 1, 6, 9, 5, 4));
}

TEST(SamplerOrderTest, IsFixedForADatasetOfFullSize) {
  const Rows rows = Epoch(Options(60000, 60, 0, 1, 20240607), 3);
  EXPECT_THAT(Rows(rows.begin(), rows.begin() + 8),
              ElementsAre(36283, 18760, 17526, 30836, 22848, 41482, 29901, 44866));
  uint64_t digest = 0;
  for (int64_t row : rows) digest = digest * 1099511628211u + static_cast<uint64_t>(row);
  EXPECT_EQ(digest, 13611622660302556016u);
}

TEST(SamplerOptionsTest, AcceptsADatasetOfExactlyOneStep) {
  EXPECT_EQ(Options(12, 3, 3, 4).Validate(), absl::OkStatus());
}

TEST(SamplerOptionsTest, RefusesADatasetSmallerThanOneStep) {
  EXPECT_EQ(Options(11, 3, 0, 4).Validate(),
            absl::InvalidArgumentError(
                "the dataset has 11 rows, expected at least 12: one batch of 3 for each of 4 "
                "workers; lower the batch size or use fewer"));
}

TEST(SamplerOptionsTest, RefusesAStepTooLargeFor32Bits) {
  const int large = 1 << 30;
  EXPECT_EQ(Options(100, large, 0, large).Validate().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SamplerOptionsTest, RefusesAnEmptyBatch) {
  EXPECT_EQ(Options(100, 0).Validate(),
            absl::InvalidArgumentError("the batch size is 0, expected at least 1"));
}

TEST(SamplerOptionsTest, RefusesAJobWithoutWorkers) {
  EXPECT_EQ(Options(100, 1, 0, 0).Validate(),
            absl::InvalidArgumentError("the number of workers is 0, expected at least 1"));
}

TEST(SamplerOptionsTest, RefusesAnIndexOutsideTheWorkers) {
  EXPECT_EQ(Options(100, 1, 4, 4).Validate(),
            absl::InvalidArgumentError("the worker's index is 4, expected 0 to 3 with 4 workers"));
  EXPECT_EQ(Options(100, 1, -1, 4).Validate(),
            absl::InvalidArgumentError("the worker's index is -1, expected 0 to 3 with 4 workers"));
}

}  // namespace
}  // namespace sluice
