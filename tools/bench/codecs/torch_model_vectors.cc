#include <torch/torch.h>

#include <numeric>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/bench/codecs/model_vectors.h"
#include "worker/data/batch.h"
#include "worker/data/load_dataset.h"
#include "worker/torch/models/models.h"
#include "worker/torch/training/batch_tensors.h"

namespace sluice::bench {
namespace {

void Append(const torch::Tensor& tensor, std::vector<float>* to) {
  const torch::Tensor whole = tensor.contiguous();
  const float* const first = whole.data_ptr<float>();
  to->insert(to->end(), first, first + whole.numel());
}

ModelVectors VectorsOf(const Classifier& model) {
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
    std::vector<int64_t> rows(training.batch_size);
    std::iota(rows.begin(), rows.end(), first);
    const BatchTensors batch = TensorsOf(MakeBatch(data, rows));
    torch::nn::functional::cross_entropy(model->forward(batch.inputs), batch.labels).backward();
    optimizer.step();
  }
  return VectorsOf(*model);
}

}  // namespace

absl::StatusOr<ModelVectors> TrainModel(const Training& training) {
  const auto data = LoadDataset({}, DatasetSplit::kTrain);
  if (!data.ok()) return data.status();
  try {
    return Train(training, *data);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("LibTorch: ", error.what()));
  }
}

}  // namespace sluice::bench
