// With gradients added in the order of ranks, training is reproducible to the bit: two runs under
// mpirun end with the same parameters, and so does the same computation written out in one process,
// with LibTorch for the gradients and plain loops for all the rest.

#include <torch/torch.h>
#include <zlib.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"
#include "worker/data/load_dataset.h"
#include "worker/data/sampler.h"
#include "worker/torch/models/models.h"

namespace sluice {
namespace {

constexpr int kWorkers = 3;
constexpr int kSteps = 12;
constexpr int kBatch = 16;
constexpr uint64_t kSeed = 7;
constexpr float kLearningRate = 0.05F;
constexpr float kMomentum = 0.9F;

std::string RunCrc(const std::string& order) {
  const auto job =
      Mpirun({{kWorkers + 1,
               {RunfilePath("worker/sluice_train"), absl::StrCat("--max-steps=", kSteps),
                absl::StrCat("--batch-size=", kBatch), absl::StrCat("--seed=", kSeed),
                absl::StrCat("--learning-rate=", kLearningRate),
                absl::StrCat("--momentum=", kMomentum), "--progress=off", order}}});
  EXPECT_THAT(job->Wait(), IsOkAndHolds(0)) << job->output();
  std::map<std::string, std::string> rows = ClosingRows(job->output());
  EXPECT_EQ(rows["steps"], absl::StrCat(kSteps)) << job->output();
  return rows["parameters' CRC-32"];
}

// As the learners prepare them.
torch::Tensor ImagesOf(const Dataset& data, const std::vector<int64_t>& rows) {
  torch::Tensor images =
      torch::empty({static_cast<int64_t>(rows.size()), 1, data.form.rows, data.form.columns});
  auto* to = images.data_ptr<float>();
  for (const int64_t row : rows) {
    for (int64_t i = 0; i < data.form.rows * data.form.columns; ++i) {
      const uint8_t pixel = data.images[row * data.form.rows * data.form.columns + i];
      *to++ = (static_cast<float>(pixel) / 255.0F - 0.2860F) / 0.3530F;
    }
  }
  return images;
}

torch::Tensor LabelsOf(const Dataset& data, const std::vector<int64_t>& rows) {
  torch::Tensor labels = torch::empty({static_cast<int64_t>(rows.size())}, torch::kInt64);
  for (size_t i = 0; i < rows.size(); ++i) labels[static_cast<int64_t>(i)] = data.labels[rows[i]];
  return labels;
}

// One process in the place of the server and its three workers.
class OneProcess {
 public:
  explicit OneProcess(const Dataset& data) : data_(data) {
    torch::set_num_threads(1);
    torch::manual_seed(kSeed);
    model_ = MakeModel("lenet");
  }

  void Step(int step) {
    std::vector<float> sum;
    for (int worker = 0; worker < kWorkers; ++worker) {
      const std::vector<float> gradient = GradientOf(worker, step);
      if (sum.empty()) {
        sum = gradient;
      } else {
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
      }
    }
    std::vector<float> parameters = Parameters();
    const bool first = momentum_.empty();
    momentum_.resize(sum.size());
    for (size_t i = 0; i < sum.size(); ++i) {
      const float gradient = sum[i] / kWorkers;
      momentum_[i] = first ? gradient : kMomentum * momentum_[i] + gradient;
      parameters[i] -= kLearningRate * momentum_[i];
    }
    SetParameters(parameters);
  }

  std::string Crc() {
    const std::vector<float> parameters = Parameters();
    return absl::StrFormat("%08x", crc32_z(0, reinterpret_cast<const Bytef*>(parameters.data()),
                                           parameters.size() * sizeof(float)));
  }

 private:
  std::vector<float> GradientOf(int worker, int step) {
    SamplerOptions options;
    options.dataset_size = data_.size();
    options.batch_size = kBatch;
    options.worker_index = worker;
    options.workers = kWorkers;
    options.seed = kSeed;
    const std::vector<int64_t> rows = Sampler(options).Batch(0, step);
    model_->zero_grad();
    model_->train();
    torch::nn::functional::cross_entropy(model_->forward(ImagesOf(data_, rows)),
                                         LabelsOf(data_, rows))
        .backward();
    std::vector<float> gradient;
    for (const torch::Tensor& parameter : model_->parameters()) Append(parameter.grad(), gradient);
    return gradient;
  }

  std::vector<float> Parameters() {
    std::vector<float> values;
    for (const torch::Tensor& parameter : model_->parameters()) Append(parameter, values);
    return values;
  }

  void SetParameters(const std::vector<float>& values) {
    const torch::NoGradGuard no_grad;
    const float* from = values.data();
    for (const torch::Tensor& parameter : model_->parameters()) {
      std::memcpy(parameter.data_ptr<float>(), from, parameter.numel() * sizeof(float));
      from += parameter.numel();
    }
  }

  static void Append(const torch::Tensor& tensor, std::vector<float>& values) {
    const torch::Tensor flat = tensor.detach().contiguous();
    values.insert(values.end(), flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  }

  const Dataset& data_;
  std::shared_ptr<Classifier> model_;
  std::vector<float> momentum_;
};

TEST(DeterministicTrainingTest, TwoRunsAndOneProcessEndWithTheSameBits) {
  const auto data = LoadDataset({}, DatasetSplit::kTrain);
  ASSERT_THAT(data, IsOk());
  OneProcess one_process(*data);
  for (int step = 0; step < kSteps; ++step) one_process.Step(step);
  const std::string expected = one_process.Crc();
  EXPECT_EQ(RunCrc("--reduction-order=rank"), expected);
  EXPECT_EQ(RunCrc("--reduction-order=rank"), expected);
}

}  // namespace
}  // namespace sluice
