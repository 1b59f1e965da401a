#include "worker/torch/models/models.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <stdexcept>

#include "worker/torch/models/resnet.h"

namespace sluice {
namespace {

namespace nn = torch::nn;

constexpr int64_t kPixels = 28 * 28;
constexpr int64_t kClasses = 10;

class LeNet final : public ImageClassifier {
 public:
  LeNet()
      : conv1_(register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 6, 5).padding(2)))),
        conv2_(register_module("conv2", nn::Conv2d(6, 16, 5))),
        fc1_(register_module("fc1", nn::Linear(16 * 5 * 5, 120))),
        fc2_(register_module("fc2", nn::Linear(120, 84))),
        fc3_(register_module("fc3", nn::Linear(84, kClasses))) {}

  torch::Tensor forward(torch::Tensor images) override {
    torch::Tensor x = torch::max_pool2d(torch::relu(conv1_->forward(images)), 2);
    x = torch::max_pool2d(torch::relu(conv2_->forward(x)), 2).flatten(1);
    x = torch::relu(fc1_->forward(x));
    x = torch::relu(fc2_->forward(x));
    return fc3_->forward(x);
  }

 private:
  nn::Conv2d conv1_;
  nn::Conv2d conv2_;
  nn::Linear fc1_;
  nn::Linear fc2_;
  nn::Linear fc3_;
};

class Mlp final : public ImageClassifier {
 public:
  Mlp()
      : hidden_(register_module("hidden", nn::Linear(kPixels, 256))),
        norm_(register_module("norm", nn::BatchNorm1d(256))),
        output_(register_module("output", nn::Linear(256, kClasses))) {}

  torch::Tensor forward(torch::Tensor images) override {
    const torch::Tensor x = hidden_->forward(images.flatten(1));
    return output_->forward(torch::relu(norm_->forward(x)));
  }

 private:
  nn::Linear hidden_;
  nn::BatchNorm1d norm_;
  nn::Linear output_;
};

}  // namespace

std::shared_ptr<ImageClassifier> MakeModel(const std::string& name) {
  if (name == "lenet") return std::make_shared<LeNet>();
  if (name == "mlp") return std::make_shared<Mlp>();
  if (name == "resnet18") return MakeResNet18();
  throw std::invalid_argument("no model \"" + name +
                              "\"; known models are lenet, mlp and resnet18");
}

}  // namespace sluice
