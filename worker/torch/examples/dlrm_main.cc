// A recommendation model whose embeddings are tables on the server, in the form of DLRM (Naumov et
// al. 2019, "Deep Learning Recommendation Model for Personalization and Recommendation Systems").
// table_training.h tells how to run it.
//
// Each sample has numbers, and for each of kFields fields a bag of ids by Zipf's law. The click
// depends on hidden vectors of the ids and their products, so it can be learnt; the test loss of
// who knows these vectors is printed beside the model's.

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "worker/data/zipf_law.h"
#include "worker/torch/examples/sample_numbers.h"
#include "worker/torch/examples/table_training.h"

namespace sluice::examples {
namespace {

constexpr int64_t kFields = 8;
constexpr int64_t kRows = 100'000;  // of each table
constexpr int64_t kWidth = 16;
constexpr int64_t kBag = 2;  // ids of a bag
constexpr int64_t kNumbers = 13;
constexpr int64_t kHidden = 3;  // numbers of a hidden vector
constexpr int64_t kTestSamples = 20'000;

std::string NameOf(int64_t field) { return "field" + std::to_string(field); }

class Dlrm {
 public:
  static constexpr int64_t kBatch = 2048;
  static constexpr int64_t kBatches = 200;
  static constexpr double kRate = 0.05;

  template <typename Tables>
  struct Model : torch::nn::Module {
    Model() {
      for (int64_t field = 0; field < kFields; ++field) {
        RemoteEmbeddingOptions table;
        table.width = kWidth;
        table.initializer = {RowInitializerKind::kUniform, 0.05f, 1};
        const std::string name = NameOf(field);
        bags.push_back(register_module(name, Tables::MakeBag(name, kRows, table)));
      }
      bottom = register_module(
          "bottom", torch::nn::Sequential(torch::nn::Linear(kNumbers, 64), torch::nn::ReLU(),
                                          torch::nn::Linear(64, kWidth), torch::nn::ReLU()));
      const int64_t products = (kFields + 1) * kFields / 2;
      top = register_module(
          "top", torch::nn::Sequential(torch::nn::Linear(kWidth + products, 64), torch::nn::ReLU(),
                                       torch::nn::Linear(64, 1)));
    }

    // The logarithm of the odds of a click, for each sample.
    torch::Tensor forward(const torch::Tensor& numbers, const std::vector<torch::Tensor>& ids) {
      const torch::Tensor dense = bottom->forward(numbers);
      const torch::Tensor offsets = torch::arange(0, numbers.size(0) * kBag, kBag, torch::kInt64);
      std::vector<torch::Tensor> vectors = {dense};
      for (size_t field = 0; field < bags.size(); ++field) {
        vectors.push_back(bags[field]->forward(ids[field], offsets));
      }
      const torch::Tensor stacked = torch::stack(vectors, 1);  // [samples, fields + 1, width]
      const torch::Tensor products = torch::bmm(stacked, stacked.transpose(1, 2));
      const torch::Tensor below = torch::tril_indices(kFields + 1, kFields + 1, -1);
      const torch::Tensor pairs = products.index({torch::indexing::Slice(), below[0], below[1]});
      return top->forward(torch::cat({dense, pairs}, 1)).squeeze(1);
    }

    std::vector<typename Tables::Bag> bags;
    torch::nn::Sequential bottom = nullptr;
    torch::nn::Sequential top = nullptr;
  };

  struct Batch {
    torch::Tensor numbers;           // [samples, kNumbers]
    std::vector<torch::Tensor> ids;  // of each field, bag after bag
    torch::Tensor odds;              // the logarithms that the clicks were drawn with
    torch::Tensor clicks;            // 0 or 1
  };

  Dlrm() {
    for (int64_t field = 0; field < kFields; ++field) {
      hidden_.push_back(0.7 * torch::randn({kRows, kHidden}));
    }
    weights_ = 0.3 * torch::randn({kNumbers});
    test_ = Samples(/*seed=*/1, 0, kTestSamples);
  }

  Batch MakeBatch(int64_t first, int64_t count) const { return Samples(/*seed=*/0, first, count); }

  template <typename Model>
  torch::Tensor Loss(Model& model, const Batch& batch) const {
    return torch::binary_cross_entropy_with_logits(model.forward(batch.numbers, batch.ids),
                                                   batch.clicks);
  }

  template <typename Model>
  void Tell(Model& model, int epoch) const {
    const torch::Tensor odds = model.forward(test_.numbers, test_.ids);
    std::cout << "epoch " << epoch << ": test loss " << LossOf(odds) << ", area under the curve "
              << AreaUnderCurve(odds) << "; at best " << LossOf(test_.odds) << ", "
              << AreaUnderCurve(test_.odds) << std::endl;
  }

 private:
  Batch Samples(uint64_t seed, int64_t first, int64_t count) const {
    Batch batch;
    batch.numbers = torch::empty({count, kNumbers});
    batch.ids.assign(kFields, {});
    for (torch::Tensor& ids : batch.ids) ids = torch::empty({count * kBag}, torch::kInt64);
    torch::Tensor chances = torch::empty({count});
    for (int64_t i = 0; i < count; ++i) {
      SampleNumbers numbers(seed, static_cast<uint64_t>(first + i));
      for (int64_t j = 0; j < kNumbers; ++j) {
        batch.numbers.data_ptr<float>()[i * kNumbers + j] = numbers.Normal();
      }
      for (const torch::Tensor& ids : batch.ids) {
        for (int64_t j = i * kBag; j < (i + 1) * kBag; ++j) {
          ids.data_ptr<int64_t>()[j] =
              static_cast<int64_t>(zipf_.Draw([&] { return numbers.Uniform(); }));
        }
      }
      chances.data_ptr<float>()[i] = static_cast<float>(numbers.Uniform());
    }
    batch.odds = OddsOf(batch);
    batch.clicks = (chances < batch.odds.sigmoid()).to(torch::kFloat32);
    return batch;
  }

  // The sum of the products of all pairs of hidden vectors, as in a factorization machine.
  torch::Tensor OddsOf(const Batch& batch) const {
    torch::Tensor sum = torch::zeros({batch.numbers.size(0), kHidden});
    torch::Tensor squares = torch::zeros_like(sum);
    for (size_t field = 0; field < hidden_.size(); ++field) {
      const torch::Tensor vectors = hidden_[field].index_select(0, batch.ids[field]);
      const torch::Tensor bag = vectors.view({-1, kBag, kHidden}).sum(1);
      sum += bag;
      squares += bag * bag;
    }
    return batch.numbers.matmul(weights_) + 0.5 * (sum * sum - squares).sum(1);
  }

  float LossOf(const torch::Tensor& odds) const {
    return torch::binary_cross_entropy_with_logits(odds, test_.clicks).item<float>();
  }

  // How often a sample with a click has higher odds than one without.
  double AreaUnderCurve(const torch::Tensor& odds) const {
    const torch::Tensor ranks = odds.argsort().argsort().to(torch::kFloat64) + 1;
    const auto clicks = test_.clicks.to(torch::kFloat64);
    const auto with = clicks.sum().item<double>();
    const double without = static_cast<double>(odds.numel()) - with;
    return ((ranks * clicks).sum().item<double>() - with * (with + 1) / 2) / (with * without);
  }

  const ZipfLaw zipf_{kRows, 1.1};
  std::vector<torch::Tensor> hidden_;
  torch::Tensor weights_;
  Batch test_;
};

}  // namespace
}  // namespace sluice::examples

int main(int argc, char** argv) {
  return sluice::examples::Main<sluice::examples::Dlrm>(argc, argv);
}
