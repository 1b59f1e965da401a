#include "worker/torch/torch_optimizers.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sluice {
namespace {

using TorchOptions = torch::optim::OptimizerOptions;
using TorchGroup = torch::optim::OptimizerParamGroup;

// ---- The optimizers that torch::optim has ----
//
// PairOptions() hands each option of ours and torch's to `pair`, which copies one to the other.

template <typename Pair>
void PairOptions(SgdOptions& ours, torch::optim::SGDOptions& theirs, const Pair& pair) {
  pair(ours.learning_rate, theirs.lr());
  pair(ours.momentum, theirs.momentum());
  pair(ours.dampening, theirs.dampening());
  pair(ours.weight_decay, theirs.weight_decay());
  pair(ours.nesterov, theirs.nesterov());
}

// Adam and AdamW.
template <typename Ours, typename Theirs, typename Pair>
void PairOptions(Ours& ours, Theirs& theirs, const Pair& pair) {
  pair(ours.learning_rate, theirs.lr());
  pair(ours.beta1, std::get<0>(theirs.betas()));
  pair(ours.beta2, std::get<1>(theirs.betas()));
  pair(ours.eps, theirs.eps());
  pair(ours.weight_decay, theirs.weight_decay());
  pair(ours.amsgrad, theirs.amsgrad());
}

template <typename Pair>
void PairOptions(AdagradOptions& ours, torch::optim::AdagradOptions& theirs, const Pair& pair) {
  pair(ours.learning_rate, theirs.lr());
  pair(ours.lr_decay, theirs.lr_decay());
  pair(ours.weight_decay, theirs.weight_decay());
  pair(ours.initial_accumulator_value, theirs.initial_accumulator_value());
  pair(ours.eps, theirs.eps());
}

template <typename Pair>
void PairOptions(RmsPropOptions& ours, torch::optim::RMSpropOptions& theirs, const Pair& pair) {
  pair(ours.learning_rate, theirs.lr());
  pair(ours.alpha, theirs.alpha());
  pair(ours.eps, theirs.eps());
  pair(ours.weight_decay, theirs.weight_decay());
  pair(ours.momentum, theirs.momentum());
  pair(ours.centered, theirs.centered());
}

// The class of torch::optim for our options, and the class of its options; void if it has none.
template <typename OptimizerClass, typename OptionsClass>
struct TorchClasses {
  using Optimizer = OptimizerClass;
  using Options = OptionsClass;
};
template <typename Ours>
struct TorchFor : TorchClasses<void, void> {};
template <>
struct TorchFor<SgdOptions> : TorchClasses<torch::optim::SGD, torch::optim::SGDOptions> {};
template <>
struct TorchFor<AdamOptions> : TorchClasses<torch::optim::Adam, torch::optim::AdamOptions> {};
template <>
struct TorchFor<AdamWOptions> : TorchClasses<torch::optim::AdamW, torch::optim::AdamWOptions> {};
template <>
struct TorchFor<AdagradOptions>
    : TorchClasses<torch::optim::Adagrad, torch::optim::AdagradOptions> {};
template <>
struct TorchFor<RmsPropOptions>
    : TorchClasses<torch::optim::RMSprop, torch::optim::RMSpropOptions> {};

template <typename Ours>
constexpr bool kInTorch = !std::is_void_v<typename TorchFor<Ours>::Optimizer>;

// ---- From torch::optim ----

template <typename Ours>
bool Take(const TorchOptions& from, Ours& ours) {
  if constexpr (kInTorch<Ours>) {
    const auto* const known = dynamic_cast<const typename TorchFor<Ours>::Options*>(&from);
    if (known == nullptr) return false;
    auto theirs = *known;
    PairOptions(ours, theirs, [](auto& own, auto& other) { own = other; });
    return true;
  }
  return false;
}

OptimizerOptions FromTorch(const TorchOptions& from) {
  std::vector<std::string> titles;
  for (OptimizerOptions options : AllOptimizers()) {
    if (std::visit([&from](auto& ours) { return Take(from, ours); }, options)) return options;
    if (HasTorchOptimizer(options)) titles.emplace_back(OptimizerTitle(options));
  }
  throw std::invalid_argument(absl::StrCat(
      "the options belong to an optimizer that the server does not have; expected those of ",
      Listed(titles, "or")));
}

// ---- To torch::optim ----

template <typename Ours>
typename TorchFor<Ours>::Options ToTorch(Ours ours) {
  typename TorchFor<Ours>::Options theirs(ours.learning_rate);
  PairOptions(ours, theirs, [](auto& own, auto& other) { other = own; });
  return theirs;
}

// The parameters in no group with the defaults, then the groups.
template <typename Options>
std::vector<TorchGroup> TorchGroups(const OptimizerConfig& config, const torch::nn::Module& module,
                                    bool for_tables) {
  using Torch = typename TorchFor<Options>::Options;
  const auto add = [](std::vector<TorchGroup>& groups, const OptimizerOptions& options) {
    groups.emplace_back(std::vector<torch::Tensor>(),
                        std::make_unique<Torch>(ToTorch(std::get<Options>(options))));
  };
  std::vector<TorchGroup> groups;
  add(groups, config.options);
  absl::flat_hash_map<absl::string_view, size_t> places;
  for (const OptimizerGroup& group : config.groups) {
    for (const std::string& name : group.parameters) places[name] = groups.size();
    add(groups, group.options);
  }
  for (const auto& [name, tensor] : Trained(module)) {
    const auto place = places.find(name);
    groups[place == places.end() ? 0 : place->second].params().push_back(tensor);
  }
  if (for_tables || groups.size() == 1 || !groups.front().params().empty()) return groups;
  return {groups.begin() + 1, groups.end()};
}

// Calls `visit` with each group of MakeTorchOptimizer()'s optimizer and its number.
template <typename Visit>
void ForEachGroup(const OptimizerConfig& config, torch::optim::Optimizer& optimizer,
                  const Visit& visit) {
  std::vector<TorchGroup>& groups = optimizer.param_groups();
  if (groups.size() != config.groups.size() && groups.size() != config.groups.size() + 1) {
    throw std::invalid_argument(
        "a parameter group was added or removed after the optimizer had joined the job; give it "
        "all "
        "groups before");
  }
  auto number = static_cast<uint32_t>(config.groups.size() + 1 - groups.size());
  for (TorchGroup& group : groups) visit(group.options(), number++);
}

}  // namespace

OptimizerConfig ConfigOf(const TorchOptions& options) { return {FromTorch(options)}; }

OptimizerConfig ConfigOf(const std::vector<TorchGroup>& groups, const TorchOptions& defaults,
                         const torch::nn::Module& module) {
  OptimizerConfig config = ConfigOf(defaults);
  std::vector<std::vector<std::string>> names = NamesIn(groups, module);
  for (size_t i = 0; i < groups.size(); ++i) {
    const TorchGroup& from = groups[i];
    OptimizerGroup group;
    group.parameters = std::move(names[i]);
    group.options = from.has_options() ? FromTorch(from.options()) : config.options;
    // torch::optim::Adagrad has one for all groups: the defaults'.
    if (auto* const adagrad = std::get_if<AdagradOptions>(&group.options)) {
      const auto* const all = std::get_if<AdagradOptions>(&config.options);
      if (all != nullptr) adagrad->initial_accumulator_value = all->initial_accumulator_value;
    }
    if (!group.parameters.empty()) config.groups.push_back(std::move(group));
  }
  return config;
}

std::vector<std::pair<std::string, torch::Tensor>> Trained(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, torch::Tensor>> trained;
  absl::flat_hash_set<const void*> known;
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor& tensor = item.value();
    if (!tensor.requires_grad() || !known.insert(tensor.unsafeGetTensorImpl()).second) continue;
    trained.emplace_back(item.key(), tensor);
  }
  return trained;
}

std::vector<std::vector<std::string>> NamesIn(const std::vector<TorchGroup>& groups,
                                              const torch::nn::Module& module) {
  const auto trained = Trained(module);
  absl::flat_hash_map<const void*, std::string> ungrouped;
  for (const auto& [name, tensor] : trained) ungrouped[tensor.unsafeGetTensorImpl()] = name;
  std::vector<std::vector<std::string>> names;
  for (const TorchGroup& group : groups) {
    names.emplace_back();
    for (const torch::Tensor& tensor : group.params()) {
      if (!tensor.requires_grad()) continue;
      const auto found = ungrouped.find(tensor.unsafeGetTensorImpl());
      if (found == ungrouped.end()) {
        throw std::invalid_argument(
            "a parameter group holds a tensor that is in another group, or none of the model's "
            "parameters");
      }
      names.back().push_back(found->second);
      ungrouped.erase(found);
    }
  }
  const auto left = std::find_if(trained.begin(), trained.end(), [&](const auto& item) {
    return ungrouped.contains(item.second.unsafeGetTensorImpl());
  });
  if (left == trained.end()) return names;
  throw std::invalid_argument(absl::StrCat(
      "parameter \"", left->first,
      "\" is in no parameter group, so that it would never change; add it to one, or freeze it"));
}

bool HasTorchOptimizer(const OptimizerOptions& options) {
  return std::visit([](const auto& ours) { return kInTorch<std::decay_t<decltype(ours)>>; },
                    options);
}

std::unique_ptr<torch::optim::Optimizer> MakeTorchOptimizer(const OptimizerConfig& config,
                                                            const torch::nn::Module& module,
                                                            bool for_tables) {
  return std::visit(
      [&](const auto& ours) -> std::unique_ptr<torch::optim::Optimizer> {
        using Ours = std::decay_t<decltype(ours)>;
        if constexpr (kInTorch<Ours>) {
          return std::make_unique<typename TorchFor<Ours>::Optimizer>(
              TorchGroups<Ours>(config, module, for_tables), ToTorch(ours));
        } else {
          std::vector<std::string> names;
          for (const OptimizerOptions& other : AllOptimizers()) {
            if (HasTorchOptimizer(other)) names.emplace_back(OptimizerName(other));
          }
          throw std::invalid_argument(absl::StrCat(
              "torch::optim has no ", OptimizerName(ours),
              "; without a server, and for local steps, expected ", Listed(names, "or")));
        }
      },
      config.options);
}

void SetLearningRates(const OptimizerConfig& config, double factor,
                      torch::optim::Optimizer& optimizer) {
  ForEachGroup(config, optimizer, [&](TorchOptions& options, uint32_t group) {
    options.set_lr(factor * LearningRateOf(OptionsOf(config, nullptr, group)));
  });
}

ChangedOptions::Groups ChangedIn(torch::optim::Optimizer& optimizer,
                                 const OptimizerConfig& config) {
  ChangedOptions::Groups changed;
  ForEachGroup(config, optimizer, [&](const TorchOptions& options, uint32_t group) {
    OptimizerOptions now = FromTorch(options);
    if (!FirstDifference(OptionsOf(config, nullptr, group), now).has_value()) return;
    changed.emplace(group, std::move(now));
  });
  return changed;
}

}  // namespace sluice
