// Factors a large matrix, of which a few cells are known: the rows of both factors are tables on
// the server, and no worker holds them.
//
//   mpirun -n 3 matrix_factorization [--epochs=N]    rank 0 serves, two workers train
//   matrix_factorization --single [--epochs=N]       in one process, with torch::nn::Embedding
//
// The cells are those of a matrix of rank kRank plus noise. Rows and columns are drawn by Zipf's
// law with exponent 1.1, as in recommendation (AdaPM, Renz-Wieland et al. 2022).

#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

#include "worker/job.h"
#include "worker/torch/remote_optimizer.h"
#include "worker/torch/run_worker.h"
#include "worker/torch/tables/remote_embedding.h"

namespace {

constexpr int64_t kSize = 20000;  // rows, and columns
constexpr int64_t kRank = 8;
constexpr double kZipf = 1.1;
constexpr float kNoise = 0.1f;
constexpr int kBatch = 1024;
constexpr int kBatches = 200;  // of an epoch
constexpr double kRate = 0.5;

// A batch of known cells.
struct Cells {
  torch::Tensor rows, columns, values;
};

class Matrix {
 public:
  explicit Matrix(uint64_t seed) : engine_(seed), noise_(0, kNoise) {
    torch::manual_seed(7);  // the matrix is the same for all
    left_ = torch::randn({kSize, kRank}) / std::sqrt(static_cast<double>(kRank));
    right_ = torch::randn({kSize, kRank});
    std::vector<double> weights;
    for (int64_t i = 1; i <= kSize; ++i) weights.push_back(std::pow(i, -kZipf));
    zipf_ = std::discrete_distribution<int64_t>(weights.begin(), weights.end());
  }

  Cells Draw(int count) {
    Cells cells = {torch::empty({count}, torch::kInt64), torch::empty({count}, torch::kInt64), {}};
    torch::Tensor noise = torch::empty({count});
    for (int i = 0; i < count; ++i) {
      cells.rows[i] = zipf_(engine_);
      cells.columns[i] = zipf_(engine_);
      noise[i] = noise_(engine_);
    }
    const auto left = left_.index_select(0, cells.rows);
    const auto right = right_.index_select(0, cells.columns);
    cells.values = (left * right).sum(1) + noise;
    return cells;
  }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<float> noise_;
  std::discrete_distribution<int64_t> zipf_;
  torch::Tensor left_, right_;
};

// `Embedding` is RemoteEmbedding, or torch::nn::Embedding.
template <typename Embedding>
struct Factors : torch::nn::Module {
  Factors(Embedding row_factors, Embedding column_factors) {
    rows = register_module("rows", std::move(row_factors));
    columns = register_module("columns", std::move(column_factors));
    bias = register_parameter("bias", torch::zeros({1}));
  }
  torch::Tensor Loss(const Cells& cells) {
    const auto cell = (rows->forward(cells.rows) * columns->forward(cells.columns)).sum(1) + bias;
    return torch::mse_loss(cell, cells.values);
  }
  Embedding rows = nullptr;
  Embedding columns = nullptr;
  torch::Tensor bias;
};

template <typename Model, typename Step>
void Train(Model& model, int epochs, uint64_t worker, bool speaks, const Step& step) {
  Matrix matrix(worker + 1);
  Matrix others(1000);
  const Cells test = others.Draw(20000);
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    for (int batch = 0; batch < kBatches; ++batch) step(matrix.Draw(kBatch));
    if (!speaks) continue;
    const torch::NoGradGuard no_gradients;
    std::cout << "epoch " << epoch << ": test loss " << model.Loss(test).template item<float>()
              << std::endl;
  }
}

sluice::RemoteEmbedding Table(uint64_t seed) {
  sluice::RemoteEmbeddingOptions options;
  options.width = kRank;
  options.initializer = {sluice::RowInitializerKind::kNormal, 0.3f, seed};
  return sluice::RemoteEmbedding(options);
}

torch::nn::Embedding Dense() {
  torch::nn::Embedding dense(kSize, kRank);
  const torch::NoGradGuard no_gradients;
  dense->weight.normal_(0, 0.3);
  return dense;
}

void TrainWith(const sluice::Job& job, int epochs) {
  Factors<sluice::RemoteEmbedding> model(Table(1), Table(2));
  sluice::RemoteOptimizer optimizer(job, model, torch::optim::AdagradOptions(kRate));
  Train(model, epochs, optimizer.index(), optimizer.index() == 0, [&](const Cells& cells) {
    optimizer.zero_grad();
    const torch::Tensor loss = model.Loss(cells);
    loss.backward();
    optimizer.step(kBatch, loss.item<float>());
  });
}

void TrainAlone(int epochs) {
  Factors<torch::nn::Embedding> model(Dense(), Dense());
  torch::optim::Adagrad optimizer(model.parameters(), torch::optim::AdagradOptions(kRate));
  Train(model, epochs, 0, true, [&](const Cells& cells) {
    optimizer.zero_grad();
    model.Loss(cells).backward();
    optimizer.step();
  });
}

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  int epochs = 8;
  bool single = false;
  for (int i = 1; i < argc; ++i) {
    std::sscanf(argv[i], "--epochs=%d", &epochs);
    single = single || std::strcmp(argv[i], "--single") == 0;
  }
  if (single) {
    TrainAlone(epochs);
    return 0;
  }
  auto job = sluice::Job::Start(&argc, &argv);
  if (job.is_server()) return job.Serve();
  return sluice::RunWorker(argv[0], [&] { TrainWith(job, epochs); });
}
