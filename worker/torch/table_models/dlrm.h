// A recommendation model in the form of DLRM (Naumov et al. 2019, "Deep Learning Recommendation
// Model for Personalization and Recommendation Systems"): the bags of each field come from a table.

#ifndef SLUICE_WORKER_TORCH_TABLE_MODELS_DLRM_H_
#define SLUICE_WORKER_TORCH_TABLE_MODELS_DLRM_H_

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/data/tables/click_data.h"
#include "worker/torch/table_models/batch_views.h"
#include "worker/torch/table_models/click_test.h"
#include "worker/torch/table_models/table_model.h"
#include "worker/torch/tables/remote_embedding.h"

namespace sluice {

// Learns from ClickData.
template <typename Rows>
class Dlrm final : public TableModel {
 public:
  Dlrm() {
    RemoteEmbeddingOptions table;
    table.width = kWidth;
    table.initializer = {RowInitializerKind::kUniform, 0.05F, 1};
    for (int64_t field = 0; field < ClickData::kFields; ++field) {
      const std::string name = "field" + std::to_string(field);
      bags_.push_back(register_module(name, Rows::MakeBag(name, ClickData::kIds, table)));
    }
    bottom_ = register_module(
        "bottom",
        torch::nn::Sequential(torch::nn::Linear(ClickData::kNumbers, kHidden), torch::nn::ReLU(),
                              torch::nn::Linear(kHidden, kWidth), torch::nn::ReLU()));
    top_ = register_module("top",
                           torch::nn::Sequential(torch::nn::Linear(kWidth + kProducts, kHidden),
                                                 torch::nn::ReLU(), torch::nn::Linear(kHidden, 1)));
  }

  torch::Tensor Loss(const Batch& batch) override {
    return torch::binary_cross_entropy_with_logits(OddsOf(batch), TargetsOf(batch));
  }

 private:
  static constexpr int64_t kWidth = 16;
  static constexpr int64_t kHidden = 64;
  static constexpr int64_t kVectors = ClickData::kFields + 1;
  static constexpr int64_t kProducts = kVectors * (kVectors - 1) / 2;

  TestResult Test(const Batch& test) override {
    return TestOfClicks(OddsOf(test), TargetsOf(test));
  }

  // The logarithm of the odds of a click, for each sample.
  torch::Tensor OddsOf(const Batch& batch) {
    const int64_t ids = batch.size() * ClickData::kBag;  // of a field
    const torch::Tensor offsets = torch::arange(0, ids, ClickData::kBag, torch::kInt64);
    const torch::Tensor dense = bottom_->forward(InputsOf(batch));
    std::vector<torch::Tensor> vectors = {dense};
    for (size_t field = 0; field < bags_.size(); ++field) {
      const torch::Tensor of_field = IdsAt(batch, static_cast<int64_t>(field) * ids, ids);
      vectors.push_back(bags_[field]->forward(of_field, offsets));
    }
    const torch::Tensor stacked = torch::stack(vectors, 1);  // [samples, vectors, width]
    const torch::Tensor products = torch::bmm(stacked, stacked.transpose(1, 2));
    const torch::Tensor below = torch::tril_indices(kVectors, kVectors, -1);
    const torch::Tensor pairs = products.index({torch::indexing::Slice(), below[0], below[1]});
    return top_->forward(torch::cat({dense, pairs}, 1)).squeeze(1);
  }

  std::vector<typename Rows::Bag> bags_;
  torch::nn::Sequential bottom_ = nullptr;
  torch::nn::Sequential top_ = nullptr;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLE_MODELS_DLRM_H_
