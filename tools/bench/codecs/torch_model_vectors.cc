#include <torch/torch.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tools/bench/codecs/model_vectors.h"
#include "worker/data/dataset.h"
#include "worker/torch/models/models.h"

namespace sluice::bench {
namespace {

// Mean and standard deviation of Fashion-MNIST's training images.
constexpr float kMean = 0.2860F;
constexpr float kDeviation = 0.3530F;

torch::Tensor Images(const Dataset& data, int64_t first, int64_t count) {
  torch::Tensor images = torch::empty({count, 1, data.rows, data.columns});
  const int64_t pixels = int64_t{data.rows} * data.columns;
  const uint8_t* const from = data.images.data() + first * pixels;
  std::transform(from, from + count * pixels, images.data_ptr<float>(), [](uint8_t pixel) {
    return (static_cast<float>(pixel) / 255.0F - kMean) / kDeviation;
  });
  return images;
}

torch::Tensor Labels(const Dataset& data, int64_t first, int64_t count) {
  torch::Tensor labels = torch::empty({count}, torch::kInt64);
  std::copy_n(data.labels.data() + first, count, labels.data_ptr<int64_t>());
  return labels;
}

void Append(const torch::Tensor& tensor, std::vector<float>* to) {
  const torch::Tensor whole = tensor.contiguous();
  const float* const first = whole.data_ptr<float>();
  to->insert(to->end(), first, first + whole.numel());
}

ModelVectors VectorsOf(const ImageClassifier& model) {
  const torch::NoGradGuard no_grad;
  ModelVectors vectors;
  for (const torch::Tensor& parameter : model.parameters()) {
    const auto elements = static_cast<uint64_t>(parameter.numel());
    const uint64_t columns = parameter.dim() < 2 ? 0 : elements / parameter.size(0);
    vectors.tensors.push_back({elements, columns});
    Append(parameter.grad(), &vectors.gradient);
    Append(parameter, &vectors.parameters);
  }
  return vectors;
}

ModelVectors Train(const Training& training, const Dataset& data) {
  torch::manual_seed(1);
  torch::set_num_threads(static_cast<int>(std::thread::hardware_concurrency()));
  const auto model = MakeModel(training.model);
  model->train();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  for (int64_t step = 0; step < training.steps; ++step) {
    const int64_t first = step * training.batch_size % (data.size() - training.batch_size);
    optimizer.zero_grad();
    const torch::Tensor logits = model->forward(Images(data, first, training.batch_size));
    torch::nn::functional::cross_entropy(logits, Labels(data, first, training.batch_size))
        .backward();
    optimizer.step();
  }
  return VectorsOf(*model);
}

}  // namespace

absl::StatusOr<ModelVectors> TrainModel(const Training& training) {
  const auto data_dir = DefaultDataDir("fashion-mnist");
  if (!data_dir.ok()) return data_dir.status();
  const auto data = LoadDataset(*data_dir, DatasetSplit::kTrain);
  if (!data.ok()) return data.status();
  try {
    return Train(training, *data);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("LibTorch: ", error.what()));
  }
}

}  // namespace sluice::bench
