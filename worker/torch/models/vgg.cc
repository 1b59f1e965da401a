#include "worker/torch/models/vgg.h"

#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "worker/torch/models/image_form.h"

namespace sluice {
namespace {

namespace nn = torch::nn;

constexpr int64_t kPaddedSide = 32;  // five poolings leave one pixel of it
constexpr int64_t kPooledSide = 7;
constexpr int64_t kHidden = 4096;

// The convolutions of each of the five groups (table 1 of the paper).
std::array<int, 5> ConvolutionsOf(int layers) {
  switch (layers) {
    case 11:
      return {1, 1, 2, 2, 2};
    case 13:
      return {2, 2, 2, 2, 2};
    case 16:
      return {2, 2, 3, 3, 3};
    default:
      return {2, 2, 4, 4, 4};
  }
}

nn::Conv2d FirstConvolution(int64_t from, int64_t to) {
  nn::Conv2d convolution(nn::Conv2dOptions(from, to, 3).padding(1));
  nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
  nn::init::zeros_(convolution->bias);
  return convolution;
}

nn::Linear FirstLinear(int64_t from, int64_t to) {
  nn::Linear linear(from, to);
  nn::init::normal_(linear->weight, 0, 0.01);
  nn::init::zeros_(linear->bias);
  return linear;
}

class Vgg final : public Classifier {
 public:
  Vgg(int layers, bool normalizes, const SampleForm& form) : large_(IsLarge(form)) {
    int64_t from = form.channels;
    int64_t to = 64;
    for (const int convolutions : ConvolutionsOf(layers)) {
      for (int i = 0; i < convolutions; ++i) {
        features_->push_back(FirstConvolution(from, to));
        if (normalizes) features_->push_back(nn::BatchNorm2d(to));
        features_->push_back(nn::ReLU());
        from = to;
      }
      features_->push_back(nn::MaxPool2d(nn::MaxPool2dOptions(2).stride(2)));
      to = std::min<int64_t>(2 * to, 512);
    }
    register_module("features", features_);
    if (large_) {
      for (const int64_t inputs : {from * kPooledSide * kPooledSide, kHidden}) {
        classifier_->push_back(FirstLinear(inputs, kHidden));
        classifier_->push_back(nn::ReLU());
        classifier_->push_back(nn::Dropout());
      }
      from = kHidden;
    }
    classifier_->push_back(FirstLinear(from, form.classes));
    register_module("classifier", classifier_);
  }

  torch::Tensor forward(torch::Tensor images) override {
    const int64_t side = large_ ? kPooledSide : 1;
    const torch::Tensor x = features_->forward(Padded(images));
    return classifier_->forward(torch::adaptive_avg_pool2d(x, {side, side}).flatten(1));
  }

 private:
  // A normalized pixel of 0 is the mean.
  static torch::Tensor Padded(const torch::Tensor& images) {
    const int64_t rows = std::max<int64_t>(0, kPaddedSide - images.size(2));
    const int64_t columns = std::max<int64_t>(0, kPaddedSide - images.size(3));
    if (rows == 0 && columns == 0) return images;
    return torch::constant_pad_nd(images,
                                  {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2});
  }

  const bool large_;
  nn::Sequential features_;
  nn::Sequential classifier_;
};

}  // namespace

std::shared_ptr<Classifier> MakeVgg(int layers, bool normalizes, const SampleForm& form) {
  CheckImageForm(absl::StrCat("vgg", layers), form);
  return std::make_shared<Vgg>(layers, normalizes, form);
}

}  // namespace sluice
