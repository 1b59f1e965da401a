#include "worker/torch/batch_norms.h"

#include <torch/nn/modules/batchnorm.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// Writes the module's momentum, and returns true, if it is one of these.
template <typename... Norms>
bool IsAny(const torch::nn::Module& module, absl::optional<double>* momentum) {
  const auto is = [&](const auto* norm) {
    if (norm == nullptr) return false;
    const auto& own = norm->options.momentum();
    *momentum = own.has_value() ? absl::make_optional(*own) : absl::nullopt;
    return true;
  };
  return (is(dynamic_cast<const Norms*>(&module)) || ...);
}

bool IsBatchNorm(const torch::nn::Module& module, absl::optional<double>* momentum) {
  if (const auto* const holder = dynamic_cast<const BatchNormHolder*>(&module)) {
    *momentum = holder->momentum();
    return holder->is_batch_norm();
  }
  return IsAny<torch::nn::BatchNorm1dImpl, torch::nn::BatchNorm2dImpl, torch::nn::BatchNorm3dImpl>(
      module, momentum);
}

// What `batches` batches leave of a value that `before` batches had made.
double DecayOf(const absl::optional<double>& momentum, int64_t before, int64_t batches) {
  const auto count = static_cast<double>(batches);
  if (momentum.has_value()) return std::pow(1 - *momentum, count);
  return before == 0 && batches == 0 ? 1 : static_cast<double>(before) / (before + batches);
}

}  // namespace

BatchNorms::BatchNorms(torch::nn::Module& model, const Layout& layout) {
  absl::flat_hash_map<const LayoutRange*, size_t> averages;
  Add("", model, layout, &averages);
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    Add(absl::StrCat(item.key(), "."), *item.value(), layout, &averages);
  }
  for (const LayoutRange& range : layout.ranges()) {
    if (range.kind != RangeKind::kStatistic) continue;
    const auto average = averages.find(&range);
    statistics_.push_back(
        {average == averages.end() ? absl::nullopt : absl::make_optional(average->second),
         range.offset, range.end()});
  }
  NotePull();
}

void BatchNorms::Add(const std::string& path, torch::nn::Module& module, const Layout& layout,
                     absl::flat_hash_map<const LayoutRange*, size_t>* averages) {
  absl::optional<double> momentum;
  const auto buffers = module.named_buffers(/*recurse=*/false);
  const torch::Tensor* const batches = buffers.find("num_batches_tracked");
  if (batches == nullptr || !batches->defined() || batches->scalar_type() != torch::kInt64) return;
  if (!IsBatchNorm(module, &momentum)) return;
  for (const char* const name : {"running_mean", "running_var"}) {
    const LayoutRange* const range = layout.Find(absl::StrCat(path, name));  // null: a second name
    const bool is_exact = range != nullptr && (range->dtype == DataType::kFloat32 ||
                                               range->dtype == DataType::kFloat64);
    if (is_exact) averages->emplace(range, norms_.size());
  }
  norms_.push_back({&module, *batches, 0});
}

RunningMeans BatchNorms::elements() const {
  RunningMeans elements;
  for (const Statistic& statistic : statistics_) {
    elements.push_back({statistic.begin, statistic.end, 0});
  }
  return elements;
}

void BatchNorms::NotePull() {
  for (Norm& norm : norms_) norm.pulled = norm.batches.item<int64_t>();
}

RunningMeans BatchNorms::Decays() const {
  std::vector<absl::optional<float>> decays;
  for (const Norm& norm : norms_) {
    absl::optional<double> momentum;
    IsBatchNorm(*norm.module, &momentum);
    const int64_t batches = norm.batches.item<int64_t>() - norm.pulled;
    decays.emplace_back();
    if (batches < 0) continue;
    const double decay = DecayOf(momentum, norm.pulled, batches);
    if (decay >= 0 && decay <= 1) decays.back() = static_cast<float>(decay);
  }
  RunningMeans means;
  for (const Statistic& statistic : statistics_) {
    const absl::optional<float> decay =
        statistic.norm.has_value() ? decays[*statistic.norm] : absl::make_optional(1.0F);
    if (decay.has_value()) Append({statistic.begin, statistic.end, *decay}, &means);
  }
  return means;
}

}  // namespace sluice
