#include "worker/torch/models/resnet.h"

#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/torch/models/image_form.h"

namespace sluice {
namespace {

namespace nn = torch::nn;

constexpr int64_t kStemWidth = 64;

// Without bias: batch normalization follows.
nn::Conv2d Convolution(int64_t from, int64_t to, int64_t kernel, int64_t stride) {
  nn::Conv2d convolution(
      nn::Conv2dOptions(from, to, kernel).stride(stride).padding(kernel / 2).bias(false));
  nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
  return convolution;
}

// The blocks of each of the four groups, and whether a block is a bottleneck (table 1 of the
// paper).
struct Depth {
  std::array<int, 4> blocks;
  bool bottleneck;
};

Depth DepthOf(int layers) {
  switch (layers) {
    case 18:
      return {{2, 2, 2, 2}, false};
    case 34:
      return {{3, 4, 6, 3}, false};
    case 50:
      return {{3, 4, 6, 3}, true};
    case 101:
      return {{3, 4, 23, 3}, true};
    default:
      return {{3, 8, 36, 3}, true};
  }
}

// Two or, in a bottleneck, three convolutions beside a shortcut, which is projected where the shape
// changes.
class Block final : public nn::Module {
 public:
  Block(int64_t from, int64_t width, int64_t stride, bool bottleneck) {
    const int64_t to = bottleneck ? 4 * width : width;
    if (bottleneck) {
      Add(from, width, 1, 1);
      Add(width, width, 3, stride);
      Add(width, to, 1, 1);
    } else {
      Add(from, width, 3, stride);
      Add(width, to, 3, 1);
    }
    if (from == to && stride == 1) return;
    downsample_ = register_module(
        "downsample", nn::Sequential(Convolution(from, to, 1, stride), nn::BatchNorm2d(to)));
  }

  torch::Tensor forward(const torch::Tensor& images) {
    torch::Tensor x = images;
    for (size_t i = 0; i < layers_.size(); ++i) {
      x = layers_[i].second->forward(layers_[i].first->forward(x));
      if (i + 1 < layers_.size()) x = torch::relu(x);
    }
    return torch::relu(x + (downsample_.is_empty() ? images : downsample_->forward(images)));
  }

 private:
  void Add(int64_t from, int64_t to, int64_t kernel, int64_t stride) {
    const size_t number = layers_.size() + 1;
    const auto convolution =
        register_module(absl::StrCat("conv", number), Convolution(from, to, kernel, stride));
    layers_.emplace_back(convolution,
                         register_module(absl::StrCat("bn", number), nn::BatchNorm2d(to)));
  }

  std::vector<std::pair<nn::Conv2d, nn::BatchNorm2d>> layers_;
  nn::Sequential downsample_{nullptr};
};

class ResNet final : public Classifier {
 public:
  ResNet(const Depth& depth, const SampleForm& form)
      : large_(IsLarge(form)),
        conv1_(register_module("conv1", large_ ? Convolution(form.channels, kStemWidth, 7, 2)
                                               : Convolution(form.channels, kStemWidth, 3, 1))),
        bn1_(register_module("bn1", nn::BatchNorm2d(kStemWidth))) {
    int64_t from = kStemWidth;
    for (size_t group = 0; group < depth.blocks.size(); ++group) {
      const int64_t width = kStemWidth << group;
      nn::Sequential layer;
      for (int block = 0; block < depth.blocks.at(group); ++block) {
        const int64_t stride = block == 0 && group > 0 ? 2 : 1;
        layer->push_back(std::make_shared<Block>(from, width, stride, depth.bottleneck));
        from = depth.bottleneck ? 4 * width : width;
      }
      layers_.push_back(register_module(absl::StrCat("layer", group + 1), layer));
    }
    fc_ = register_module("fc", nn::Linear(from, form.classes));
  }

  torch::Tensor forward(torch::Tensor images) override {
    torch::Tensor x = torch::relu(bn1_->forward(conv1_->forward(images)));
    if (large_) x = torch::max_pool2d(x, 3, 2, 1);
    for (nn::Sequential& layer : layers_) x = layer->forward(x);
    return fc_->forward(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

 private:
  const bool large_;
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  std::vector<nn::Sequential> layers_;
  nn::Linear fc_{nullptr};
};

}  // namespace

std::shared_ptr<Classifier> MakeResNet(int layers, const SampleForm& form) {
  CheckImageForm(absl::StrCat("resnet", layers), form);
  return std::make_shared<ResNet>(DepthOf(layers), form);
}

}  // namespace sluice
