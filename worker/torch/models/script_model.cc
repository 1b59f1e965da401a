#include "worker/torch/models/script_model.h"

#include <torch/script.h>

#include <algorithm>
#include <exception>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/input_file.h"
#include "worker/torch/batch_norms.h"

namespace sluice {
namespace {

namespace nn = torch::nn;

// Holds the tensors of one submodule, so that the tensors of a script lie in modules of LibTorch
// under the same names.
class Names final : public nn::Module, public BatchNormHolder {
 public:
  bool is_batch_norm() const override { return is_batch_norm_; }
  absl::optional<double> momentum() const override { return momentum_; }

  // `script` has the tensors of this module.
  void Take(const torch::jit::Module& script) {
    const auto momentum = script.type()->findConstant("momentum");  // PyTorch's own has one
    is_batch_norm_ = absl::StartsWith(script.type()->name()->name(), "BatchNorm") &&
                     momentum.has_value() && (momentum->isDouble() || momentum->isNone());
    if (is_batch_norm_ && momentum->isDouble()) momentum_ = momentum->toDouble();
  }

  // The module of these names below this one.
  Names& At(const std::vector<std::string>& path) {
    Names* at = this;
    for (const std::string& name : path) {
      std::shared_ptr<Names>& child = at->children_[name];
      if (child == nullptr) child = at->register_module(name, std::make_shared<Names>());
      at = child.get();
    }
    return *at;
  }

 private:
  std::map<std::string, std::shared_ptr<Names>> children_;
  bool is_batch_norm_ = false;
  absl::optional<double> momentum_;
};

class ScriptModel final : public Classifier {
 public:
  explicit ScriptModel(const torch::jit::Module& script) : script_(script) {
    for (const auto& parameter : script_.named_parameters()) {
      const auto [module, name] = PlaceOf(parameter.name);
      module->register_parameter(name, parameter.value, parameter.value.requires_grad());
    }
    for (const auto& module : script_.named_modules()) {
      for (const auto& buffer : module.value.named_buffers(/*recurse=*/false)) {
        NamesOf(module.name)->register_buffer(buffer.name, buffer.value);
        buffers_.push_back({module.value, buffer.name, buffer.value});
      }
    }
    for (const auto& module : script_.named_modules()) {
      if (module.name.empty() || !module.value.hasattr("running_mean")) continue;
      static_cast<Names*>(NamesOf(module.name))->Take(module.value);
    }
  }

  torch::Tensor forward(torch::Tensor samples) override {
    torch::Tensor output = script_.forward({std::move(samples)}).toTensor();
    TakeReplacedBuffers();
    return output;
  }

  void train(bool on) override {
    Classifier::train(on);
    script_.train(on);
  }

 private:
  struct Buffer {
    torch::jit::Module owner;
    std::string name;
    torch::Tensor registered;  // in the modules of LibTorch
  };

  // A script that assigns to a buffer (`self.ema = …`) puts another tensor in its place.
  void TakeReplacedBuffers() {
    const torch::NoGradGuard no_grad;
    for (Buffer& buffer : buffers_) {
      const torch::Tensor now = buffer.owner.attr(buffer.name).toTensor();
      if (now.is_same(buffer.registered)) continue;
      buffer.registered.copy_(now);
      buffer.owner.setattr(buffer.name, buffer.registered);
    }
  }

  // The module that holds the tensor, and the tensor's name in it.
  std::pair<nn::Module*, std::string> PlaceOf(const std::string& full_name) {
    const size_t dot = full_name.rfind('.');
    if (dot == std::string::npos) return {this, full_name};
    return {NamesOf(full_name.substr(0, dot)), full_name.substr(dot + 1)};
  }

  // Those of a submodule; this one if the name is empty.
  nn::Module* NamesOf(const std::string& full_name) {
    if (full_name.empty()) return this;
    std::vector<std::string> path = absl::StrSplit(full_name, '.');
    std::shared_ptr<Names>& top = tops_[path.front()];
    if (top == nullptr) top = register_module(path.front(), std::make_shared<Names>());
    path.erase(path.begin());
    return &top->At(path);
  }

  torch::jit::Module script_;
  std::vector<Buffer> buffers_;
  std::map<std::string, std::shared_ptr<Names>> tops_;
};

// Runs the model once, so that a model that does not fit the data is refused before training.
void CheckTakes(ScriptModel& model, const SampleForm& form) {
  const auto parameters = model.parameters();
  const bool learns = std::any_of(parameters.begin(), parameters.end(),
                                  [](const auto& parameter) { return parameter.requires_grad(); });
  if (!learns) throw std::invalid_argument("no parameter requires a gradient, expected some");
  std::vector<torch::Tensor> before;
  for (const torch::Tensor& buffer : model.buffers()) before.push_back(buffer.clone());
  const torch::NoGradGuard no_grad;
  model.eval();
  const torch::Tensor logits =
      model.forward(torch::zeros({2, form.channels, form.rows, form.columns}));
  model.train(true);
  if (logits.sizes() != torch::IntArrayRef({2, form.classes})) {
    throw std::invalid_argument(
        absl::StrCat("forward() of 2 samples returns a tensor of ", c10::str(logits.sizes()),
                     ", expected [2, ", form.classes, "]: one number for each class of the data"));
  }
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].equal(model.buffers()[i])) continue;
    throw std::invalid_argument(
        "evaluation changes a buffer, as it does if the model was traced in training mode; save "
        "torch.jit.script(model)");
  }
}

}  // namespace

std::shared_ptr<Classifier> LoadScriptModel(const std::string& path, const SampleForm& form) {
  // LibTorch would wait for the other end of a pipe.
  const absl::Status regular = OpenInput(path).status();
  if (absl::IsInvalidArgument(regular)) throw std::invalid_argument(std::string(regular.message()));
  try {
    const auto model = std::make_shared<ScriptModel>(torch::jit::load(path, torch::kCPU));
    CheckTakes(*model, form);
    return model;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(absl::StrCat(path, ": ", error.what()));
  } catch (const std::exception& error) {
    const absl::string_view what = error.what();  // c10::Error adds a backtrace
    throw std::invalid_argument(absl::StrCat(
        path, ": expected a file of torch.jit.save() whose forward() takes samples of [n, ",
        form.channels, ", ", form.rows, ", ", form.columns,
        "]; LibTorch says: ", what.substr(0, what.find("\nException raised from"))));
  }
}

}  // namespace sluice
