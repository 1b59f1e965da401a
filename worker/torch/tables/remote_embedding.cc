#include "worker/torch/tables/remote_embedding.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/torch/tables/floats.h"
#include "worker/torch/tables/unique_ids.h"

namespace sluice {
namespace {

// `numbers` as int64, on the CPU. `what` names them, for example "ids of an embedding".
torch::Tensor AsNumbers(const std::string& what, const torch::Tensor& numbers) {
  if (!numbers.defined()) {
    throw std::invalid_argument(
        absl::StrCat(what, " are an undefined tensor, expected one of int64"));
  }
  const auto type = numbers.scalar_type();
  if (type == torch::kInt64 || type == torch::kInt32) {
    return numbers.to(torch::kCPU, torch::kInt64).contiguous();
  }
  throw std::invalid_argument(absl::StrCat(what, " are ", toString(type),
                                           ", expected int64 or int32; convert them with "
                                           "to(torch::kInt64)"));
}

void CheckIsList(const std::string& what, const torch::Tensor& numbers) {
  if (!numbers.defined() || numbers.dim() == 1) return;
  throw std::invalid_argument(
      absl::StrCat(what, " have ", numbers.dim(), " dimensions, expected 1; flatten them"));
}

// torch reads outside of the ids if offsets descend or are too large.
void CheckOffsets(const torch::Tensor& offsets, int64_t ids) {
  const absl::Span<const int64_t> begins(offsets.data_ptr<int64_t>(),
                                         static_cast<size_t>(offsets.numel()));
  int64_t before = 0;
  for (size_t bag = 0; bag < begins.size(); ++bag) {
    const bool first = bag == 0 && begins[0] != 0;
    if (!first && begins[bag] >= before && begins[bag] <= ids) {
      before = begins[bag];
      continue;
    }
    throw std::invalid_argument(
        absl::StrCat("the offset of bag ", bag, " is ", begins[bag], ", expected ",
                     bag == 0 ? "0, where the first bag begins"
                              : absl::StrCat(before, ", where the bag before it begins, to ", ids,
                                             ", the number of ids")));
  }
}

// The different ids, ascending.
std::vector<RowId> IdsOf(const torch::Tensor& ids) {
  const int64_t* const begin = ids.data_ptr<int64_t>();
  return {begin, begin + ids.numel()};
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
  torch::Tensor rows = Floats({ids.numel(), int64_t{options_.width}});
  pull->Read(FloatsOf(rows));
  return rows;
}

UniqueIds RemoteEmbeddingImpl::Different(const torch::Tensor& ids) const {
  CheckShape(ids);
  UniqueIds different = Unique(AsNumbers("ids of an embedding", ids));
  if (different.ids.numel() > 0 && different.ids[0].item<int64_t>() < 0) {
    throw std::invalid_argument(
        absl::StrCat("an embedding got the id ", different.ids[0].item<int64_t>(),
                     ", expected ids from 0 on; give each item a number that is not negative"));
  }
  return different;
}

RemoteEmbeddingImpl::Lookup RemoteEmbeddingImpl::LookUp(const torch::Tensor& ids) {
  const auto [different, places] = Different(ids);
  torch::Tensor rows = Pull(different);
  ForgetUnreachable();
  if (is_training() && torch::GradMode::is_enabled()) {
    rows.requires_grad_();
    used_.push_back({different, rows});
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
  const torch::Tensor different = Different(ids).ids;
  prefetched_ = nullptr;
  prefetched_ids_ = different;
  prefetched_ = Start(different);
}

void RemoteEmbeddingImpl::ForgetGradients() {
  for (Used& used : used_) used.rows.mutable_grad() = torch::Tensor();
  ForgetUnreachable();
}

// A graph that can still run backward() refers to its leaves.
void RemoteEmbeddingImpl::ForgetUnreachable() {
  const auto is_over = [](const Used& used) {
    return used.rows.use_count() == 1 && !used.rows.grad().defined();
  };
  used_.erase(std::remove_if(used_.begin(), used_.end(), is_over), used_.end());
}

RowTensor RemoteEmbeddingImpl::Gradient() const {
  std::vector<torch::Tensor> ids;
  std::vector<torch::Tensor> gradients;
  for (const Used& used : used_) {
    if (!used.rows.grad().defined()) continue;
    ids.push_back(used.ids);
    gradients.push_back(used.rows.grad());
  }
  if (ids.empty()) return {{}, Floats({0, int64_t{options_.width}})};
  if (ids.size() == 1) return {IdsOf(ids[0]), gradients[0].contiguous()};
  const auto [different, places] = Unique(torch::cat(ids));
  torch::Tensor sums = Floats({different.numel(), int64_t{options_.width}});
  sums.index_add_(0, places, torch::cat(gradients));
  return {IdsOf(different), sums};
}

void RemoteEmbeddingBagImpl::CheckShape(const torch::Tensor& ids) const {
  CheckIsList("ids of an embedding bag", ids);
}

torch::Tensor RemoteEmbeddingBagImpl::forward(const torch::Tensor& ids,
                                              const torch::Tensor& offsets) {
  CheckIsList("offsets of an embedding bag", offsets);
  const torch::Tensor begins = AsNumbers("offsets of an embedding bag", offsets);
  CheckOffsets(begins, ids.defined() ? ids.numel() : 0);
  const Lookup found = LookUp(ids);
  const int64_t mode = mode_ == Mode::kSum ? 0 : 1;  // as torch counts them
  return std::get<0>(torch::embedding_bag(found.rows, found.places, begins,
                                          /*scale_grad_by_freq=*/false, mode))
      .to(ids.device());
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
