// Factors a large matrix, of which a few cells are known: the rows of both factors are tables on
// the server, and no worker holds them. table_training.h tells how to run it.
//
// The cells are those of a matrix of rank kRank plus noise. Rows and columns are drawn by Zipf's
// law with exponent 1.1, as in recommendation (AdaPM, Renz-Wieland et al. 2022).

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <iostream>

#include "worker/data/zipf_law.h"
#include "worker/torch/examples/sample_numbers.h"
#include "worker/torch/examples/table_training.h"

namespace sluice::examples {
namespace {

constexpr int64_t kSize = 20000;  // rows, and columns
constexpr int64_t kRank = 8;
constexpr float kNoise = 0.1f;
constexpr int64_t kTestCells = 20000;

RemoteEmbeddingOptions TableOf(uint64_t seed) {
  RemoteEmbeddingOptions options;
  options.width = kRank;
  options.initializer = {RowInitializerKind::kNormal, 0.3f, seed};
  return options;
}

class MatrixFactorization {
 public:
  static constexpr int64_t kBatch = 2048;
  static constexpr int64_t kBatches = 200;
  static constexpr double kRate = 0.5;

  template <typename Tables>
  struct Model : torch::nn::Module {
    Model() {
      rows = register_module("rows", Tables::MakeEmbedding("rows", kSize, TableOf(1)));
      columns = register_module("columns", Tables::MakeEmbedding("columns", kSize, TableOf(2)));
      bias = register_parameter("bias", torch::zeros({1}));
    }
    typename Tables::Embedding rows = nullptr;
    typename Tables::Embedding columns = nullptr;
    torch::Tensor bias;
  };

  struct Batch {
    torch::Tensor rows, columns, values;
  };

  MatrixFactorization() {
    left_ = torch::randn({kSize, kRank}) / std::sqrt(static_cast<double>(kRank));
    right_ = torch::randn({kSize, kRank});
    test_ = Cells(/*seed=*/1, 0, kTestCells);
  }

  Batch MakeBatch(int64_t first, int64_t count) const { return Cells(/*seed=*/0, first, count); }

  template <typename Model>
  torch::Tensor Loss(Model& model, const Batch& cells) const {
    const torch::Tensor products =
        model.rows->forward(cells.rows) * model.columns->forward(cells.columns);
    return torch::mse_loss(products.sum(1) + model.bias, cells.values);
  }

  template <typename Model>
  void Tell(Model& model, int epoch) const {
    std::cout << "epoch " << epoch << ": test loss " << Loss(model, test_).template item<float>()
              << std::endl;
  }

 private:
  Batch Cells(uint64_t seed, int64_t first, int64_t count) const {
    Batch cells = {torch::empty({count}, torch::kInt64), torch::empty({count}, torch::kInt64), {}};
    torch::Tensor noise = torch::empty({count});
    for (int64_t i = 0; i < count; ++i) {
      SampleNumbers numbers(seed, static_cast<uint64_t>(first + i));
      const auto place = [&] {
        return static_cast<int64_t>(zipf_.Draw([&] { return numbers.Uniform(); }));
      };
      cells.rows.data_ptr<int64_t>()[i] = place();
      cells.columns.data_ptr<int64_t>()[i] = place();
      noise.data_ptr<float>()[i] = kNoise * numbers.Normal();
    }
    const torch::Tensor left = left_.index_select(0, cells.rows);
    cells.values = (left * right_.index_select(0, cells.columns)).sum(1) + noise;
    return cells;
  }

  const ZipfLaw zipf_{kSize, 1.1};
  torch::Tensor left_, right_;
  Batch test_;
};

}  // namespace
}  // namespace sluice::examples

int main(int argc, char** argv) {
  return sluice::examples::Main<sluice::examples::MatrixFactorization>(argc, argv);
}
