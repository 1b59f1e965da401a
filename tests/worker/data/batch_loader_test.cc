#include "worker/data/batch_loader.h"

#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Images of one pixel. Pixel and label of image i are i.
Dataset Pixels(int64_t count) {
  Dataset data;
  data.form = {1, 1, 1, 256};
  data.images.resize(count);
  std::iota(data.images.begin(), data.images.end(), 0);
  data.labels = data.images;
  return data;
}

BatchLoaderOptions Steps(int64_t begin, int64_t end, int threads = 1) {
  BatchLoaderOptions options;
  options.sampler.dataset_size = 20;
  options.sampler.batch_size = 3;
  options.sampler.seed = 4;
  options.begin = begin;
  options.end = end;
  options.threads = threads;
  return options;
}

std::vector<std::vector<int64_t>> LabelsFrom(const Dataset& data,
                                             const BatchLoaderOptions& options) {
  BatchLoader loader(data, options);
  std::vector<std::vector<int64_t>> labels;
  while (const auto batch = loader.Next()) labels.push_back(batch->labels);
  EXPECT_FALSE(loader.Next().has_value());
  return labels;
}

TEST(BatchLoaderTest, GivesTheBatchesOfTheSamplerEpochAfterEpoch) {
  const Dataset data = Pixels(20);
  const BatchLoaderOptions options = Steps(0, 15);
  Sampler sampler(options.sampler);
  std::vector<std::vector<int64_t>> expected;
  for (int step = 0; step < 15; ++step) expected.push_back(sampler.Batch(step / 6, step % 6));
  EXPECT_EQ(LabelsFrom(data, options), expected);
}

TEST(BatchLoaderTest, BeginsWhereItIsToldTo) {
  const Dataset data = Pixels(20);
  const auto all = LabelsFrom(data, Steps(0, 15));
  EXPECT_EQ(LabelsFrom(data, Steps(7, 15)),
            std::vector<std::vector<int64_t>>(all.begin() + 7, all.end()));
  EXPECT_THAT(LabelsFrom(data, Steps(15, 15)), IsEmpty());
  EXPECT_THAT(LabelsFrom(data, Steps(16, 15)), IsEmpty());
}

TEST(BatchLoaderTest, GivesTheSameBatchesWithAnyNumberOfThreads) {
  const Dataset data = Pixels(20);
  const auto one = LabelsFrom(data, Steps(0, 300));
  EXPECT_THAT(one, SizeIs(300));
  for (const int threads : {2, 5}) EXPECT_EQ(LabelsFrom(data, Steps(0, 300, threads)), one);
}

TEST(BatchLoaderTest, EndsWhileBatchesWaitForNobody) {
  const Dataset data = Pixels(20);
  for (int given = 0; given < 5; ++given) {
    BatchLoader loader(data, Steps(0, 1000, 3));
    for (int i = 0; i < given; ++i) EXPECT_TRUE(loader.Next().has_value());
  }
}

}  // namespace
}  // namespace sluice
