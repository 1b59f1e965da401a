#include "worker/torch/models/models.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <exception>
#include <functional>
#include <stdexcept>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/torch/models/resnet.h"
#include "worker/torch/models/script_model.h"
#include "worker/torch/models/vgg.h"

namespace sluice {
namespace {

namespace nn = torch::nn;

class LogisticRegression final : public Classifier {
 public:
  explicit LogisticRegression(const SampleForm& form)
      : output_(register_module("output", nn::Linear(form.elements(), form.classes))) {}

  torch::Tensor forward(torch::Tensor samples) override {
    return output_->forward(samples.flatten(1));
  }

 private:
  nn::Linear output_;
};

class Mlp final : public Classifier {
 public:
  explicit Mlp(const SampleForm& form)
      : hidden_(register_module("hidden", nn::Linear(form.elements(), 256))),
        norm_(register_module("norm", nn::BatchNorm1d(256))),
        output_(register_module("output", nn::Linear(256, form.classes))) {}

  torch::Tensor forward(torch::Tensor samples) override {
    const torch::Tensor x = hidden_->forward(samples.flatten(1));
    return output_->forward(torch::relu(norm_->forward(x)));
  }

 private:
  nn::Linear hidden_;
  nn::BatchNorm1d norm_;
  nn::Linear output_;
};

// The paper's images are 32 x 32; those of 28 x 28 are padded to that.
int64_t LeNetPadding(const SampleForm& form) {
  if (form.rows == form.columns && form.rows == 28) return 2;
  if (form.rows == form.columns && form.rows == 32) return 0;
  throw std::invalid_argument(
      absl::StrCat("lenet takes images of 28 x 28 or 32 x 32, found samples of ", form.rows, " x ",
                   form.columns, "; logistic and mlp take samples of any form"));
}

class LeNet final : public Classifier {
 public:
  explicit LeNet(const SampleForm& form)
      : conv1_(register_module(
            "conv1",
            nn::Conv2d(nn::Conv2dOptions(form.channels, 6, 5).padding(LeNetPadding(form))))),
        conv2_(register_module("conv2", nn::Conv2d(6, 16, 5))),
        fc1_(register_module("fc1", nn::Linear(16 * 5 * 5, 120))),
        fc2_(register_module("fc2", nn::Linear(120, 84))),
        fc3_(register_module("fc3", nn::Linear(84, form.classes))) {}

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

struct KnownModel {
  std::string name;
  std::function<std::shared_ptr<Classifier>(const SampleForm& form)> make;
};

template <typename Model>
KnownModel Own(const std::string& name) {
  return {name, [](const SampleForm& form) { return std::make_shared<Model>(form); }};
}

KnownModel ResNetOf(int layers) {
  return {absl::StrCat("resnet", layers),
          [layers](const SampleForm& form) { return MakeResNet(layers, form); }};
}

KnownModel VggOf(int layers, bool normalizes) {
  return {absl::StrCat("vgg", layers, normalizes ? "-bn" : ""),
          [=](const SampleForm& form) { return MakeVgg(layers, normalizes, form); }};
}

const std::vector<KnownModel>& AllModels() {
  static const auto* const all = new std::vector<KnownModel>{
      Own<LogisticRegression>("logistic"),
      Own<Mlp>("mlp"),
      Own<LeNet>("lenet"),
      ResNetOf(18),
      ResNetOf(34),
      ResNetOf(50),
      ResNetOf(101),
      ResNetOf(152),
      VggOf(11, false),
      VggOf(13, false),
      VggOf(16, false),
      VggOf(19, false),
      VggOf(11, true),
      VggOf(13, true),
      VggOf(16, true),
      VggOf(19, true),
  };
  return *all;
}

}  // namespace

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const KnownModel& model : AllModels()) names.push_back(model.name);
  return names;
}

bool IsScriptFile(const std::string& name) {
  return absl::EndsWith(name, ".pt") || absl::EndsWith(name, ".pth");
}

std::shared_ptr<Classifier> MakeModel(const std::string& name, const SampleForm& form) {
  if (IsScriptFile(name)) return LoadScriptModel(name, form);
  for (const KnownModel& model : AllModels()) {
    if (model.name == name) return model.make(form);
  }
  throw std::invalid_argument(absl::StrCat("no model \"", name, "\"; known models are ",
                                           absl::StrJoin(ModelNames(), ", "),
                                           " and files of TorchScript, FILE.pt"));
}

void CheckTrainsOnOneSample(const std::string& name, const SampleForm& form) {
  const auto model = MakeModel(name, form);
  model->train();
  const torch::NoGradGuard no_grad;
  try {
    model->forward(torch::zeros({1, form.channels, form.rows, form.columns}));
  } catch (const std::exception&) {
    throw std::invalid_argument(absl::StrCat(
        "the model ", name, " cannot be trained on batches of one sample, for example because its ",
        "batch normalization needs several; give a larger --batch-size"));
  }
}

}  // namespace sluice
