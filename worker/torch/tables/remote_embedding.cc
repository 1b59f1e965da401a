#include "worker/torch/tables/remote_embedding.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/torch/tables/unique_ids.h"

namespace sluice {
namespace {

void CheckIds(const torch::Tensor& ids) {
  if (ids.scalar_type() == torch::kInt64) return;
  throw std::invalid_argument(
      absl::StrCat("ids of an embedding are ", toString(ids.scalar_type()), ", expected int64"));
}

// The different ids, ascending.
std::vector<RowId> IdsOf(const torch::Tensor& ids) {
  const int64_t* const begin = ids.data_ptr<int64_t>();
  return {begin, begin + ids.numel()};
}

absl::Span<float> SpanOf(const torch::Tensor& rows) {
  return {rows.data_ptr<float>(), static_cast<size_t>(rows.numel())};
}

}  // namespace

TableSpec RemoteEmbeddingImpl::SpecOf(const std::string& name) const {
  TableSpec spec;
  spec.name = name;
  spec.width = options_.width;
  spec.initializer = options_.initializer;
  spec.divisor = options_.divisor;
  spec.admit_after = options_.admit_after;
  spec.evict_after = options_.evict_after;
  spec.max_rows = options_.max_rows;
  return spec;
}

void RemoteEmbeddingImpl::Bind(uint32_t table, std::shared_ptr<RowPuller> source) {
  table_ = table;
  prefetched_ = nullptr;
  used_.clear();
  source_ = std::move(source);
}

void RemoteEmbeddingImpl::Unbind(const RowPuller& source) {
  if (source_.get() == &source) Bind(0, nullptr);
}

std::unique_ptr<PendingRows> RemoteEmbeddingImpl::Start(const torch::Tensor& ids) const {
  if (source_ == nullptr) {
    throw std::logic_error(
        "an embedding is used before a RemoteOptimizer of its model was made, so it has no rows; "
        "make the optimizer first");
  }
  return source_->Start(table_, IdsOf(ids));
}

torch::Tensor RemoteEmbeddingImpl::Pull(const torch::Tensor& ids) {
  const bool prefetched = prefetched_ != nullptr && torch::equal(prefetched_ids_, ids);
  const std::unique_ptr<PendingRows> pull = prefetched ? std::move(prefetched_) : Start(ids);
  prefetched_ = nullptr;
  torch::Tensor rows = torch::empty({ids.numel(), int64_t{options_.width}});
  pull->Read(SpanOf(rows));
  return rows;
}

RemoteEmbeddingImpl::Lookup RemoteEmbeddingImpl::LookUp(const torch::Tensor& ids) {
  CheckIds(ids);
  const auto [different, places] = Unique(ids);
  if (different.numel() > 0 && different[0].item<int64_t>() < 0) {
    throw std::invalid_argument(absl::StrCat("an embedding is asked for row ",
                                             different[0].item<int64_t>(),
                                             ", expected ids that are not negative"));
  }
  torch::Tensor rows = Pull(different);
  if (is_training() && torch::GradMode::is_enabled()) {
    rows.requires_grad_();
    used_.push_back({different, rows, false});
  }
  return {rows, places};
}

torch::Tensor RemoteEmbeddingImpl::forward(const torch::Tensor& ids) {
  const Lookup found = LookUp(ids);
  std::vector<int64_t> shape = ids.sizes().vec();
  shape.push_back(options_.width);
  return found.rows.index_select(0, found.places.flatten()).view(shape).to(ids.device());
}

void RemoteEmbeddingImpl::prefetch(const torch::Tensor& ids) {
  CheckIds(ids);
  prefetched_ids_ = Unique(ids).ids;
  prefetched_ = Start(prefetched_ids_);
}

void RemoteEmbeddingImpl::ForgetGradients() {
  const auto is_old = [](const Used& used) { return used.old; };
  used_.erase(std::remove_if(used_.begin(), used_.end(), is_old), used_.end());
  for (Used& used : used_) {
    used.rows.mutable_grad() = torch::Tensor();
    used.old = true;
  }
}

RowTensor RemoteEmbeddingImpl::TakeGradient() {
  std::vector<torch::Tensor> ids;
  std::vector<torch::Tensor> gradients;
  for (const Used& used : std::exchange(used_, {})) {
    if (!used.rows.grad().defined()) continue;
    ids.push_back(used.ids);
    gradients.push_back(used.rows.grad());
  }
  if (ids.empty()) return {{}, torch::empty({0, int64_t{options_.width}})};
  if (ids.size() == 1) return {IdsOf(ids[0]), gradients[0].contiguous()};
  const auto [different, places] = Unique(torch::cat(ids));
  torch::Tensor sums = torch::zeros({different.numel(), int64_t{options_.width}});
  sums.index_add_(0, places, torch::cat(gradients));
  return {IdsOf(different), sums};
}

torch::Tensor RemoteEmbeddingBagImpl::forward(const torch::Tensor& ids,
                                              const torch::Tensor& offsets) {
  CheckIds(offsets);
  const Lookup found = LookUp(ids);
  namespace functional = torch::nn::functional;
  functional::EmbeddingBagFuncOptions how;
  how.offsets(offsets.to(torch::kCPU));
  if (mode_ == Mode::kSum) {
    how.mode(torch::kSum);
  } else {
    how.mode(torch::kMean);
  }
  return functional::embedding_bag(found.places, found.rows, how).to(ids.device());
}

std::vector<NamedEmbedding> EmbeddingsOf(const torch::nn::Module& model) {
  std::vector<NamedEmbedding> embeddings;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    auto module = std::dynamic_pointer_cast<RemoteEmbeddingImpl>(item.value());
    if (module != nullptr) embeddings.push_back({item.key(), std::move(module)});
  }
  std::sort(embeddings.begin(), embeddings.end(),
            [](const NamedEmbedding& a, const NamedEmbedding& b) { return a.name < b.name; });
  std::set<const RemoteEmbeddingImpl*> seen;
  const auto again = [&seen](const NamedEmbedding& embedding) {
    return !seen.insert(embedding.module.get()).second;
  };
  embeddings.erase(std::remove_if(embeddings.begin(), embeddings.end(), again), embeddings.end());
  return embeddings;
}

}  // namespace sluice
