#include "worker/torch/client_rows.h"

#include <utility>

#include "worker/torch/remote_error.h"
#include "worker/torch/tables/floats.h"

namespace sluice {

class ClientRows::Pull final : public PendingRows {
 public:
  Pull(std::shared_ptr<ClientRows> owner, const ParameterClient& client, RowPull rows)
      : owner_(std::move(owner)), client_(&client), rows_(std::move(rows)) {}

  void Read(absl::Span<float> rows) override {
    ParameterClient& client = owner_->client();
    if (&client != client_) {  // the one that asked has left: this one asks again
      for (RowPull::Part& part : rows_.parts) part.pull = nullptr;
    }
    ThrowIfError(client.FinishRows(std::move(rows_), rows));
  }

 private:
  const std::shared_ptr<ClientRows> owner_;
  const ParameterClient* const client_;  // compared only
  RowPull rows_;
};

ParameterClient& ClientRows::client() const {
  if (client_ == nullptr) throw RemoteError(absl::FailedPreconditionError(closed_));
  await_();
  return *client_;
}

std::unique_ptr<PendingRows> ClientRows::Start(uint32_t table, const std::vector<RowId>& ids) {
  std::vector<RowIds> rows;
  if (!ids.empty()) rows.push_back({table, ids});
  ParameterClient& asked = client();
  return std::make_unique<Pull>(shared_from_this(), asked, asked.StartRows(rows));
}

RowGradients GradientsOf(const std::vector<NamedEmbedding>& embeddings) {
  RowGradients gradients;
  for (uint32_t table = 0; table < embeddings.size(); ++table) {
    RowTensor taken = embeddings[table].module->Gradient();
    if (taken.ids.empty()) continue;
    const auto owner = std::make_shared<const torch::Tensor>(taken.rows);
    gradients.push_back({{table, std::move(taken.ids)}, {FloatsOf(*owner), owner}});
  }
  return gradients;
}

}  // namespace sluice
