#include <torch/torch.h>

#include "absl/strings/str_cat.h"
#include "tools/bench/optimizer_race/optimizer_side.h"
#include "worker/torch/torch_optimizers.h"

namespace sluice::bench {
namespace {

// Separate parameter tensors with gradients, as a model has them.
class Tensors : public torch::nn::Module {
 public:
  Tensors(const std::vector<uint64_t>& tensors, absl::Span<const float> gradient) {
    uint64_t begin = 0;
    for (const uint64_t elements : tensors) {
      const auto size = static_cast<int64_t>(elements);
      torch::Tensor parameter =
          register_parameter(absl::StrCat("tensor", begin), torch::zeros({size}));
      torch::Tensor own = torch::empty({size});
      const absl::Span<const float> participant = gradient.subspan(begin, elements);
      std::copy(participant.begin(), participant.end(), own.data_ptr<float>());
      parameter.mutable_grad() = own;
      begin += elements;
    }
  }
};

class TorchSide final : public OptimizerSide {
 public:
  TorchSide(const OptimizerOptions& options, const std::vector<uint64_t>& tensors,
            absl::Span<const float> gradient)
      : tensors_(tensors, gradient), optimizer_(MakeTorchOptimizer({options}, tensors_)) {}

  void Step() override { optimizer_->step(); }

  std::vector<float> Parameters() const override {
    std::vector<float> all;
    for (const torch::Tensor& parameter : tensors_.parameters()) {
      const float* const first = parameter.data_ptr<float>();
      all.insert(all.end(), first, first + parameter.numel());
    }
    return all;
  }

 private:
  Tensors tensors_;
  const std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

}  // namespace

std::unique_ptr<OptimizerSide> MakeTorchSide(const OptimizerOptions& options,
                                             const std::vector<uint64_t>& tensors,
                                             absl::Span<const float> gradient, uint32_t threads) {
  if (!HasTorchOptimizer(options)) return nullptr;
  torch::set_num_threads(static_cast<int>(threads));
  return std::make_unique<TorchSide>(options, tensors, gradient);
}

}  // namespace sluice::bench
