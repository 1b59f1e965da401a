#include "worker/data/batch_loader.h"

#include <numeric>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
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

using Labels = std::vector<std::vector<int64_t>>;

// The labels of each batch, and all inputs.
std::pair<Labels, std::vector<float>> AllFrom(const Dataset& data,
                                              const BatchLoaderOptions& options,
                                              const Augmentation& augmentation = {}) {
  BatchLoader loader(SamplesOf(data, augmentation), options);
  Labels labels;
  std::vector<float> inputs;
  for (;;) {
    const auto batch = loader.Next();
    EXPECT_THAT(batch, IsOk());
    if (!batch.ok() || !batch->has_value()) break;
    EXPECT_LE(loader.ahead(), options.threads + 1);
    labels.push_back((*batch)->labels);
    inputs.insert(inputs.end(), (*batch)->inputs.begin(), (*batch)->inputs.end());
  }
  EXPECT_EQ(loader.Next()->has_value(), false);
  return {labels, inputs};
}

Labels LabelsFrom(const Dataset& data, const BatchLoaderOptions& options) {
  return AllFrom(data, options).first;
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
  Dataset data = Pixels(20);
  data.form = {1, 2, 2, 256};
  data.images.resize(80, 200);
  const auto with_threads = [&](int threads) {
    return AllFrom(data, Steps(0, 300, threads), {1, true, 7});
  };
  const auto one = with_threads(1);
  EXPECT_THAT(one.first, SizeIs(300));
  for (const int threads : {2, 5}) EXPECT_EQ(with_threads(threads), one);
}

TEST(BatchLoaderTest, SaysThatMemoryDoesNotSuffice) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the program that asks for so much";
#endif
  Dataset data = Pixels(20);
  data.images.clear();
  data.features.begins.resize(21);
  data.form.columns = int64_t{1} << 50;  // more memory than an address space has

  BatchLoader loader(SamplesOf(data, {}), Steps(0, 10, 2));
  EXPECT_THAT(loader.Next(), HasCode(absl::StatusCode::kResourceExhausted,
                                     HasSubstr("a batch of 3 samples needs more memory")));
}

TEST(BatchLoaderTest, EndsWhileBatchesWaitForNobody) {
  const Dataset data = Pixels(20);
  for (int given = 0; given < 5; ++given) {
    BatchLoader loader(SamplesOf(data, {}), Steps(0, 1000, 3));
    for (int i = 0; i < given; ++i) EXPECT_TRUE(loader.Next()->has_value());
  }
}

}  // namespace
}  // namespace sluice
