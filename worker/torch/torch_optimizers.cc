#include "worker/torch/torch_optimizers.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

using TorchOptions = torch::optim::OptimizerOptions;
using TorchGroup = torch::optim::OptimizerParamGroup;

// ---- Of torch::optim ----

SgdOptions FromTorch(const torch::optim::SGDOptions& from) {
  return {from.lr(), from.momentum(), from.dampening(), from.weight_decay(), from.nesterov()};
}

AdamOptions FromTorch(const torch::optim::AdamOptions& from) {
  const auto [beta1, beta2] = from.betas();
  return {from.lr(), beta1, beta2, from.eps(), from.weight_decay(), from.amsgrad()};
}

AdamWOptions FromTorch(const torch::optim::AdamWOptions& from) {
  const auto [beta1, beta2] = from.betas();
  return {from.lr(), beta1, beta2, from.eps(), from.weight_decay(), from.amsgrad()};
}

AdagradOptions FromTorch(const torch::optim::AdagradOptions& from) {
  return {from.lr(), from.lr_decay(), from.weight_decay(), from.initial_accumulator_value(),
          from.eps()};
}

RmsPropOptions FromTorch(const torch::optim::RMSpropOptions& from) {
  return {from.lr(),           from.alpha(),    from.eps(),
          from.weight_decay(), from.momentum(), from.centered()};
}

// Whether `from` is of that type; if so, `to` is what it says.
template <typename Torch>
bool Take(const TorchOptions& from, OptimizerOptions* to) {
  const auto* const known = dynamic_cast<const Torch*>(&from);
  if (known != nullptr) *to = FromTorch(*known);
  return known != nullptr;
}

OptimizerOptions FromAnyTorch(const TorchOptions& from) {
  OptimizerOptions to;
  const bool known = Take<torch::optim::SGDOptions>(from, &to) ||
                     Take<torch::optim::AdamOptions>(from, &to) ||
                     Take<torch::optim::AdamWOptions>(from, &to) ||
                     Take<torch::optim::AdagradOptions>(from, &to) ||
                     Take<torch::optim::RMSpropOptions>(from, &to);
  if (!known) {
    throw std::invalid_argument(
        "the options are of an optimizer that no server has, expected those of SGD, Adam, AdamW, "
        "Adagrad or RMSprop");
  }
  return to;
}

// The parameters that are trained, each under the first of its names.
std::vector<std::pair<std::string, torch::Tensor>> Trained(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, torch::Tensor>> trained;
  for (const auto& item : module.named_parameters()) {
    const bool known = std::any_of(trained.begin(), trained.end(), [&](const auto& other) {
      return other.second.is_same(item.value());
    });
    if (!known && item.value().requires_grad()) trained.emplace_back(item.key(), item.value());
  }
  return trained;
}

// ---- To torch::optim ----

torch::optim::SGDOptions ToTorch(const SgdOptions& from) {
  return torch::optim::SGDOptions(from.learning_rate)
      .momentum(from.momentum)
      .dampening(from.dampening)
      .weight_decay(from.weight_decay)
      .nesterov(from.nesterov);
}

torch::optim::AdamOptions ToTorch(const AdamOptions& from) {
  return torch::optim::AdamOptions(from.learning_rate)
      .betas({from.beta1, from.beta2})
      .eps(from.eps)
      .weight_decay(from.weight_decay)
      .amsgrad(from.amsgrad);
}

torch::optim::AdamWOptions ToTorch(const AdamWOptions& from) {
  return torch::optim::AdamWOptions(from.learning_rate)
      .betas({from.beta1, from.beta2})
      .eps(from.eps)
      .weight_decay(from.weight_decay)
      .amsgrad(from.amsgrad);
}

torch::optim::AdagradOptions ToTorch(const AdagradOptions& from) {
  return torch::optim::AdagradOptions(from.learning_rate)
      .lr_decay(from.lr_decay)
      .weight_decay(from.weight_decay)
      .initial_accumulator_value(from.initial_accumulator_value)
      .eps(from.eps);
}

torch::optim::RMSpropOptions ToTorch(const RmsPropOptions& from) {
  return torch::optim::RMSpropOptions(from.learning_rate)
      .alpha(from.alpha)
      .eps(from.eps)
      .weight_decay(from.weight_decay)
      .momentum(from.momentum)
      .centered(from.centered);
}

// The parameters in no group with the defaults, then the groups.
template <typename Options>
std::vector<TorchGroup> TorchGroups(const OptimizerConfig& config,
                                    const torch::nn::Module& module) {
  using Torch = decltype(ToTorch(std::declval<Options>()));
  const auto add = [](std::vector<TorchGroup>& groups, const OptimizerOptions& options) {
    groups.emplace_back(std::vector<torch::Tensor>(),
                        std::make_unique<Torch>(ToTorch(std::get<Options>(options))));
  };
  std::vector<TorchGroup> groups;
  add(groups, config.options);
  for (const OptimizerGroup& group : config.groups) add(groups, group.options);
  for (const auto& [name, tensor] : Trained(module)) {
    size_t place = 0;
    for (size_t i = 0; i < config.groups.size(); ++i) {
      const std::vector<std::string>& names = config.groups[i].parameters;
      if (std::find(names.begin(), names.end(), name) != names.end()) place = i + 1;
    }
    groups[place].params().push_back(tensor);
  }
  return groups;
}

// Which of torch::optim's classes has which options.
template <typename Options>
struct TorchClass {
  using Type = void;
};
template <>
struct TorchClass<SgdOptions> {
  using Type = torch::optim::SGD;
};
template <>
struct TorchClass<AdamOptions> {
  using Type = torch::optim::Adam;
};
template <>
struct TorchClass<AdamWOptions> {
  using Type = torch::optim::AdamW;
};
template <>
struct TorchClass<AdagradOptions> {
  using Type = torch::optim::Adagrad;
};
template <>
struct TorchClass<RmsPropOptions> {
  using Type = torch::optim::RMSprop;
};

}  // namespace

OptimizerConfig ConfigOf(const TorchOptions& options) { return {FromAnyTorch(options)}; }

OptimizerConfig ConfigOf(const std::vector<TorchGroup>& groups, const TorchOptions& defaults,
                         const torch::nn::Module& module) {
  OptimizerConfig config = ConfigOf(defaults);
  auto ungrouped = Trained(module);
  for (const TorchGroup& from : groups) {
    OptimizerGroup group;
    group.options = from.has_options() ? FromAnyTorch(from.options()) : config.options;
    // torch::optim::Adagrad has one for all groups: the defaults'.
    if (auto* const adagrad = std::get_if<AdagradOptions>(&group.options)) {
      const auto* const all = std::get_if<AdagradOptions>(&config.options);
      if (all != nullptr) adagrad->initial_accumulator_value = all->initial_accumulator_value;
    }
    for (const torch::Tensor& tensor : from.params()) {
      if (!tensor.requires_grad()) continue;
      const auto found = std::find_if(ungrouped.begin(), ungrouped.end(), [&](const auto& item) {
        return item.second.is_same(tensor);
      });
      if (found == ungrouped.end()) {
        throw std::invalid_argument(
            "a parameter group holds a tensor that is in another group, or none of the model's "
            "parameters");
      }
      group.parameters.push_back(found->first);
      ungrouped.erase(found);
    }
    if (!group.parameters.empty()) config.groups.push_back(std::move(group));
  }
  if (ungrouped.empty()) return config;
  throw std::invalid_argument(absl::StrCat(
      "parameter \"", ungrouped.front().first,
      "\" is in no parameter group, so that it would never change; add it to one, or freeze it"));
}

std::unique_ptr<torch::optim::Optimizer> MakeTorchOptimizer(const OptimizerConfig& config,
                                                            const torch::nn::Module& module) {
  return std::visit(
      [&](const auto& options) -> std::unique_ptr<torch::optim::Optimizer> {
        using Options = std::decay_t<decltype(options)>;
        using Class = typename TorchClass<Options>::Type;
        if constexpr (std::is_void_v<Class>) {
          throw std::invalid_argument(
              absl::StrCat("torch::optim has no ", OptimizerName(config.options),
                           "; without a server, and for local steps, expected sgd, adam, adamw, "
                           "adagrad or rmsprop"));
        } else {
          return std::make_unique<Class>(TorchGroups<Options>(config, module), ToTorch(options));
        }
      },
      config.options);
}

}  // namespace sluice
