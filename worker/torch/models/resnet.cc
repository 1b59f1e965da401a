#include "worker/torch/models/resnet.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace sluice {
namespace {

namespace nn = torch::nn;

constexpr int64_t kResNetClasses = 10;
constexpr int64_t kStemWidth = 64;

// Without bias: batch normalization follows.
nn::Conv2d Convolution(int64_t from, int64_t to, int64_t kernel, int64_t stride) {
  return nn::Conv2d(
      nn::Conv2dOptions(from, to, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// Two convolutions beside a shortcut, which is projected where the shape changes.
class BasicBlock final : public nn::Module {
 public:
  BasicBlock(int64_t from, int64_t to, int64_t stride)
      : conv1_(register_module("conv1", Convolution(from, to, 3, stride))),
        norm1_(register_module("norm1", nn::BatchNorm2d(to))),
        conv2_(register_module("conv2", Convolution(to, to, 3, 1))),
        norm2_(register_module("norm2", nn::BatchNorm2d(to))) {
    if (from == to && stride == 1) return;
    shortcut_ = register_module(
        "shortcut", nn::Sequential(Convolution(from, to, 1, stride), nn::BatchNorm2d(to)));
  }

  torch::Tensor forward(const torch::Tensor& images) {
    torch::Tensor x = torch::relu(norm1_->forward(conv1_->forward(images)));
    x = norm2_->forward(conv2_->forward(x));
    return torch::relu(x + (shortcut_.is_empty() ? images : shortcut_->forward(images)));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d norm2_;
  nn::Sequential shortcut_{nullptr};
};

class ResNet18 final : public ImageClassifier {
 public:
  ResNet18()
      : stem_(register_module("stem", Convolution(1, kStemWidth, 3, 1))),
        norm_(register_module("norm", nn::BatchNorm2d(kStemWidth))) {
    int64_t from = kStemWidth;
    for (const int64_t to : {64, 128, 256, 512}) {
      blocks_->push_back(BasicBlock(from, to, from == to ? 1 : 2));
      blocks_->push_back(BasicBlock(to, to, 1));
      from = to;
    }
    register_module("blocks", blocks_);
    output_ = register_module("output", nn::Linear(from, kResNetClasses));
  }

  torch::Tensor forward(torch::Tensor images) override {
    torch::Tensor x = torch::relu(norm_->forward(stem_->forward(images)));
    x = blocks_->forward(x);
    return output_->forward(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

 private:
  nn::Conv2d stem_;
  nn::BatchNorm2d norm_;
  nn::Sequential blocks_;
  nn::Linear output_{nullptr};
};

}  // namespace

std::shared_ptr<ImageClassifier> MakeResNet18() { return std::make_shared<ResNet18>(); }

}  // namespace sluice
