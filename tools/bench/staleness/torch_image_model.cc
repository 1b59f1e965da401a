#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>

#include "tools/bench/staleness/torch_learned_model.h"
#include "worker/data/batch.h"
#include "worker/torch/models/models.h"
#include "worker/torch/training/batch_tensors.h"
#include "worker/torch/training/evaluate.h"

namespace sluice::bench {
namespace {

class ImageModel final : public LearnedModel {
 public:
  ImageModel(const std::string& name, std::shared_ptr<const Images> images)
      : model_(MakeModel(name)), images_(std::move(images)) {}

  torch::nn::Module& module() override { return *model_; }

  torch::Tensor Loss(absl::Span<const int64_t> rows) override {
    const BatchTensors batch = TensorsOf(MakeBatch(images_->train, rows));
    model_->train();
    return torch::nn::functional::cross_entropy(model_->forward(batch.inputs), batch.labels);
  }

  double Accuracy() override { return Evaluate(*model_, images_->test).top1; }

 private:
  const std::shared_ptr<Classifier> model_;
  const std::shared_ptr<const Images> images_;
};

}  // namespace

std::unique_ptr<LearnedModel> MakeImageModel(const std::string& name,
                                             const std::shared_ptr<const Images>& images,
                                             uint64_t seed) {
  torch::manual_seed(seed);
  return std::make_unique<ImageModel>(name, images);
}

}  // namespace sluice::bench
