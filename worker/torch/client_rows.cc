#include "worker/torch/client_rows.h"

#include <algorithm>
#include <utility>

#include "worker/torch/remote_error.h"

namespace sluice {
namespace {

constexpr size_t kMostIds = 400'000;  // of one pull

}  // namespace

class ClientRows::Pull final : public PendingRows {
 public:
  Pull(std::shared_ptr<ClientRows> owner, uint32_t table, const std::vector<RowId>& ids)
      : owner_(std::move(owner)) {
    for (size_t begin = 0; begin < ids.size(); begin += kMostIds) {
      const size_t end = std::min(ids.size(), begin + kMostIds);
      const auto from = ids.begin() + static_cast<ptrdiff_t>(begin);
      parts_.push_back({{{table, {from, ids.begin() + static_cast<ptrdiff_t>(end)}}}, nullptr});
      parts_.back().pull = owner_->client_.StartRows(parts_.back().rows);
    }
    count_ = ids.size();
  }

  void Read(absl::Span<float> rows) override {
    owner_->await_();
    const size_t width = count_ == 0 ? 0 : rows.size() / count_;
    for (Part& part : parts_) {
      const size_t size = part.rows.front().ids.size() * width;
      ThrowIfError(
          owner_->client_.FinishRows(std::move(part.pull), part.rows, rows.subspan(0, size)));
      rows.remove_prefix(size);
    }
  }

 private:
  struct Part {
    std::vector<RowIds> rows;  // of one table
    std::unique_ptr<PendingPull> pull;
  };

  const std::shared_ptr<ClientRows> owner_;
  std::vector<Part> parts_;
  size_t count_ = 0;
};

std::unique_ptr<PendingRows> ClientRows::Start(uint32_t table, const std::vector<RowId>& ids) {
  await_();
  return std::make_unique<Pull>(shared_from_this(), table, ids);
}

RowGradients TakeGradients(const std::vector<NamedEmbedding>& embeddings) {
  RowGradients gradients;
  for (uint32_t table = 0; table < embeddings.size(); ++table) {
    RowTensor taken = embeddings[table].module->TakeGradient();
    if (taken.ids.empty()) continue;
    const auto owner = std::make_shared<const torch::Tensor>(taken.rows);
    const absl::Span<const float> values(owner->data_ptr<float>(),
                                         static_cast<size_t>(owner->numel()));
    gradients.push_back({{table, std::move(taken.ids)}, {values, owner}});
  }
  return gradients;
}

}  // namespace sluice
