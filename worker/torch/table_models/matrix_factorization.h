// Factors a large matrix of which a few cells are known: the rows of both factors are tables.

#ifndef SLUICE_WORKER_TORCH_TABLE_MODELS_MATRIX_FACTORIZATION_H_
#define SLUICE_WORKER_TORCH_TABLE_MODELS_MATRIX_FACTORIZATION_H_

#include <torch/torch.h>

#include <cstdint>

#include "worker/data/tables/cell_data.h"
#include "worker/torch/table_models/batch_views.h"
#include "worker/torch/table_models/table_model.h"
#include "worker/torch/tables/remote_embedding.h"

namespace sluice {

// Learns from CellData. The loss is the mean squared error; there is no other metric.
template <typename Rows>
class MatrixFactorization final : public TableModel {
 public:
  MatrixFactorization() {
    rows_ = register_module("rows", Rows::MakeEmbedding("rows", CellData::kSide, TableOf(1)));
    columns_ =
        register_module("columns", Rows::MakeEmbedding("columns", CellData::kSide, TableOf(2)));
    bias_ = register_parameter("bias", torch::zeros({1}));
  }

  torch::Tensor Loss(const Batch& cells) override {
    const int64_t count = cells.size();
    const torch::Tensor products =
        rows_->forward(IdsAt(cells, 0, count)) * columns_->forward(IdsAt(cells, count, count));
    return torch::mse_loss(products.sum(1) + bias_, TargetsOf(cells));
  }

 private:
  static RemoteEmbeddingOptions TableOf(uint64_t seed) {
    RemoteEmbeddingOptions options;
    options.width = CellData::kRank;
    options.initializer = {RowInitializerKind::kNormal, 0.3F, seed};
    return options;
  }

  TestResult Test(const Batch& test) override {
    return {test.size(), Loss(test).template item<double>(), {}};
  }

  typename Rows::Embedding rows_ = nullptr;
  typename Rows::Embedding columns_ = nullptr;
  torch::Tensor bias_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLE_MODELS_MATRIX_FACTORIZATION_H_
