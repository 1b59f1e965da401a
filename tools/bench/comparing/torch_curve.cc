#include "tools/bench/comparing/torch_curve.h"

#include <memory>
#include <utility>

#include "worker/torch/guarded.h"
#include "worker/torch/models/models.h"
#include "worker/torch/training/evaluate.h"

namespace sluice::bench {
namespace {

std::vector<torch::Tensor> TensorsOf(const torch::nn::Module& model) {
  std::vector<torch::Tensor> tensors = model.parameters();
  const std::vector<torch::Tensor> buffers = model.buffers();
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  return tensors;
}

}  // namespace

void TorchCurve::Note(const torch::nn::Module& model, Step step, absl::Duration elapsed) {
  if (!copies_.empty() && elapsed < copies_.back().elapsed + interval_) return;
  const torch::NoGradGuard no_grad;
  Copy copy = {elapsed, step, TensorsOf(model)};
  for (torch::Tensor& tensor : copy.tensors) tensor = tensor.clone();
  copies_.push_back(std::move(copy));
}

absl::StatusOr<std::vector<TorchCurve::Point>> TorchCurve::Evaluate(const std::string& model,
                                                                    const Dataset& data) const {
  return Guarded([&] {
    const torch::NoGradGuard no_grad;
    const std::shared_ptr<Classifier> tested = MakeModel(model, data.form);
    const std::vector<torch::Tensor> tensors = TensorsOf(*tested);
    std::vector<Point> points;
    for (const Copy& copy : copies_) {
      for (size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_(copy.tensors[i]);
      points.push_back({copy.elapsed, copy.step, sluice::Evaluate(*tested, data)});
    }
    return points;
  });
}

}  // namespace sluice::bench
