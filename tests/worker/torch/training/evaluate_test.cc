// Figures beside those of an independent computation: plain loops over one sample at a time.

#include "worker/torch/training/evaluate.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/torch/models/models.h"

namespace sluice {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kClasses = 10;

// Of logits, one row for each label.
Evaluation SumsOfRows(const std::vector<std::vector<float>>& logits,
                      const std::vector<int64_t>& labels) {
  std::vector<float> flat;
  for (const auto& row : logits) flat.insert(flat.end(), row.begin(), row.end());
  const auto rows = static_cast<int64_t>(labels.size());
  return SumsOf(torch::tensor(flat).view({rows, -1}), torch::tensor(labels));
}

// Random images whose labels have nothing to do with them.
Dataset RandomData(int64_t samples) {
  Dataset data;
  data.images.resize(samples * 28 * 28);
  torch::manual_seed(7);
  const torch::Tensor pixels =
      torch::randint(256, {static_cast<int64_t>(data.images.size())}, torch::kUInt8);
  std::copy_n(pixels.data_ptr<uint8_t>(), data.images.size(), data.images.begin());
  for (int64_t i = 0; i < samples; ++i) data.labels.push_back(static_cast<uint8_t>(i * 7 % 10));
  return data;
}

std::vector<double> LogitsOf(Classifier& model, const Dataset& data, int64_t sample) {
  torch::Tensor image = torch::empty({1, 1, 28, 28});
  for (int64_t i = 0; i < 28 * 28; ++i) {
    image.view({-1})[i] =
        (static_cast<float>(data.images[sample * 28 * 28 + i]) / 255.0F - 0.2860F) / 0.3530F;
  }
  const torch::Tensor logits = model.forward(image);
  std::vector<double> values;
  for (int k = 0; k < kClasses; ++k) values.push_back(logits[0][k].item<float>());
  return values;
}

Evaluation EvaluateBySample(Classifier& model, const Dataset& data) {
  const torch::NoGradGuard no_grad;
  model.eval();
  Evaluation sums;
  for (int64_t i = 0; i < data.size(); ++i) {
    const std::vector<double> logits = LogitsOf(model, data, i);
    const double own = logits[data.labels[i]];
    double exponentials = 0;
    for (const double logit : logits) exponentials += std::exp(logit);
    sums.loss += std::log(exponentials) - own;
    const auto ahead =
        std::count_if(logits.begin(), logits.end(), [own](double logit) { return logit > own; });
    sums.top1 += ahead < 1 ? 1 : 0;
    sums.top5 += ahead < 5 ? 1 : 0;
  }
  const auto samples = static_cast<double>(data.size());
  return {data.size(), sums.loss / samples, sums.top1 / samples, sums.top5 / samples};
}

class EvaluateTest : public ::testing::TestWithParam<const char*> {};

// More samples than fit in one batch.
TEST_P(EvaluateTest, GivesWhatEachSampleAloneGives) {
  torch::manual_seed(1);
  const auto model = MakeModel(GetParam());
  const bool large = std::string(GetParam()) == "resnet18";
  const Dataset data = RandomData(large ? 20 : 510);
  const Evaluation all = Evaluate(*model, data);
  const Evaluation one_by_one = EvaluateBySample(*model, data);
  EXPECT_EQ(all.samples, data.size());
  EXPECT_NEAR(all.loss, one_by_one.loss, 1e-5);
  EXPECT_EQ(all.top1, one_by_one.top1);
  EXPECT_EQ(all.top5, one_by_one.top5);
}

INSTANTIATE_TEST_SUITE_P(, EvaluateTest, ::testing::Values("lenet", "mlp", "resnet18"),
                         [](const auto& info) { return std::string(info.param); });

TEST(EvaluateStatisticsTest, UsesTheRunningStatistics) {
  const auto model = MakeModel("mlp");
  const Dataset data = RandomData(50);
  const Evaluation before = Evaluate(*model, data);
  model->named_buffers()["norm.running_mean"].fill_(3);
  const Evaluation after = Evaluate(*model, data);
  EXPECT_NE(after.loss, before.loss);
  EXPECT_NEAR(after.loss, EvaluateBySample(*model, data).loss, 1e-5);
  EXPECT_EQ(Evaluate(*model, data).loss, after.loss);  // and leaves them as they are
}

// ---- Ranks ----

TEST(RankTest, CountsTheClassesThatAreAheadOfTheLabel) {
  const std::vector<float> logits = {9, 8, 7, 6, 5, 4, 3};
  const Evaluation first = SumsOfRows({logits}, {0});
  EXPECT_EQ(first.top1, 1);
  EXPECT_EQ(first.top5, 1);
  const Evaluation fifth = SumsOfRows({logits}, {4});
  EXPECT_EQ(fifth.top1, 0);
  EXPECT_EQ(fifth.top5, 1);
  const Evaluation sixth = SumsOfRows({logits}, {5});
  EXPECT_EQ(sixth.top5, 0);
}

TEST(RankTest, OfEqualLogitsTheFirstIsAhead) {
  const std::vector<float> equal(10, 1);
  EXPECT_EQ(SumsOfRows({equal}, {0}).top1, 1);
  EXPECT_EQ(SumsOfRows({equal}, {1}).top1, 0);
  EXPECT_EQ(SumsOfRows({equal, equal}, {4, 5}).top5, 1);
}

TEST(RankTest, NanIsAheadOfAllAndNeverRight) {
  EXPECT_EQ(SumsOfRows({{kNan, 1, 2}}, {2}).top1, 0);
  const Evaluation nan = SumsOfRows({std::vector<float>(10, kNan)}, {0});
  EXPECT_EQ(nan.top5, 0);
  EXPECT_TRUE(std::isnan(nan.loss));
}

TEST(RankTest, LossIsTheCrossEntropy) {
  const Evaluation sums = SumsOfRows({{0, 0}, {std::log(3.0F), 0}}, {0, 1});
  EXPECT_EQ(sums.samples, 2);
  EXPECT_NEAR(sums.loss, std::log(2.0) + std::log(4.0), 1e-6);
}

}  // namespace
}  // namespace sluice
