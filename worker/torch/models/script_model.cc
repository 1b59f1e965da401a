#include "worker/torch/models/script_model.h"

#include <torch/script.h>

#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sluice {
namespace {

namespace nn = torch::nn;

// Holds the tensors of one submodule, so that the tensors of a script lie in modules of LibTorch
// under the same names.
class Names final : public nn::Module {
 public:
  // The module of these names below this one.
  nn::Module& At(const std::vector<std::string>& path) {
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
};

class ScriptModel final : public Classifier {
 public:
  explicit ScriptModel(torch::jit::Module script) : script_(std::move(script)) {
    for (const auto& parameter : script_.named_parameters()) {
      const auto [module, name] = PlaceOf(parameter.name);
      module->register_parameter(name, parameter.value, parameter.value.requires_grad());
    }
    for (const auto& buffer : script_.named_buffers()) {
      const auto [module, name] = PlaceOf(buffer.name);
      module->register_buffer(name, buffer.value);
    }
  }

  torch::Tensor forward(torch::Tensor samples) override {
    return script_.forward({std::move(samples)}).toTensor();
  }

  void train(bool on) override {
    Classifier::train(on);
    script_.train(on);
  }

 private:
  // The module that holds the tensor, and the tensor's name in it.
  std::pair<nn::Module*, std::string> PlaceOf(const std::string& full_name) {
    std::vector<std::string> path = absl::StrSplit(full_name, '.');
    const std::string name = std::move(path.back());
    path.pop_back();
    if (path.empty()) return {this, name};
    std::shared_ptr<Names>& top = tops_[path.front()];
    if (top == nullptr) top = register_module(path.front(), std::make_shared<Names>());
    path.erase(path.begin());
    return {&top->At(path), name};
  }

  torch::jit::Module script_;
  std::map<std::string, std::shared_ptr<Names>> tops_;
};

// Runs the model once, so that a model of another form is refused before training.
void CheckTakes(ScriptModel& model, const SampleForm& form) {
  const torch::NoGradGuard no_grad;
  model.eval();
  const torch::Tensor logits =
      model.forward(torch::zeros({2, form.channels, form.rows, form.columns}));
  model.train(true);
  if (logits.sizes() == torch::IntArrayRef({2, form.classes})) return;
  throw std::invalid_argument(
      absl::StrCat("forward() of 2 samples returns a tensor of ", c10::str(logits.sizes()),
                   ", expected [2, ", form.classes, "]: one number for each class of the data"));
}

}  // namespace

std::shared_ptr<Classifier> LoadScriptModel(const std::string& path, const SampleForm& form) {
  try {
    const auto model = std::make_shared<ScriptModel>(torch::jit::load(path));
    CheckTakes(*model, form);
    return model;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(absl::StrCat(path, ": ", error.what()));
  } catch (const c10::Error& error) {
    throw std::invalid_argument(absl::StrCat(
        path, ": expected a file of torch.jit.save() whose forward() takes samples of [n, ",
        form.channels, ", ", form.rows, ", ", form.columns,
        "]; LibTorch says: ", error.what_without_backtrace()));
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(absl::StrCat(path, ": forward() fails: ", error.what()));
  }
}

}  // namespace sluice
