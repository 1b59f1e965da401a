#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "tools/bench/staleness/torch_learned_model.h"

namespace sluice::bench {
namespace {

namespace nn = torch::nn;

constexpr int64_t kWidth = 64;
constexpr int64_t kHeads = 4;
constexpr int64_t kLayers = 2;
constexpr int64_t kTestRows = 2000;

// Tokens and the same in order, both [rows, kSortedTokens].
struct Sequences {
  torch::Tensor tokens;
  torch::Tensor sorted;
};

Sequences DrawSequences(int64_t rows, uint64_t seed) {
  std::mt19937_64 generator(seed);
  Sequences sequences;
  sequences.tokens = torch::empty({rows, kSortedTokens}, torch::kInt64);
  auto* const token = sequences.tokens.data_ptr<int64_t>();
  std::generate_n(token, rows * kSortedTokens,
                  [&] { return static_cast<int64_t>(generator() % kTokenKinds); });
  sequences.sorted = std::get<0>(sequences.tokens.sort(1));
  return sequences;
}

// An encoder as in Vaswani et al. 2017, "Attention Is All You Need", without dropout.
class Sorter final : public nn::Module {
 public:
  Sorter()
      : tokens_(register_module("tokens", nn::Embedding(kTokenKinds, kWidth))),
        places_(register_parameter("places", torch::randn({kSortedTokens, 1, kWidth}))),
        output_(register_module("output", nn::Linear(kWidth, kTokenKinds))) {
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      layers_->push_back(
          nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(kWidth, kHeads)
                                          .dim_feedforward(2 * kWidth)
                                          .dropout(0)));
    }
    register_module("layers", layers_);
  }

  // Maps tokens of shape [n, kSortedTokens] to logits of shape [n, kTokenKinds, kSortedTokens].
  torch::Tensor forward(const torch::Tensor& tokens) {
    torch::Tensor x = tokens_->forward(tokens.t()) + places_;
    for (const auto& layer : *layers_) x = layer->as<nn::TransformerEncoderLayer>()->forward(x);
    return output_->forward(x).permute({1, 2, 0});
  }

 private:
  nn::Embedding tokens_;
  torch::Tensor places_;
  nn::ModuleList layers_;
  nn::Linear output_;
};

class SortingModel final : public LearnedModel {
 public:
  SortingModel() : train_(DrawSequences(kSortingRows, 1)), test_(DrawSequences(kTestRows, 2)) {}

  nn::Module& module() override { return *sorter_; }

  torch::Tensor Loss(absl::Span<const int64_t> rows) override {
    const torch::Tensor index =
        torch::tensor(std::vector<int64_t>(rows.begin(), rows.end()), torch::kInt64);
    return nn::functional::cross_entropy(sorter_->forward(train_.tokens.index_select(0, index)),
                                         train_.sorted.index_select(0, index));
  }

  double Accuracy() override {
    const torch::NoGradGuard no_grad;
    const torch::Tensor found = sorter_->forward(test_.tokens).argmax(1);
    return found.eq(test_.sorted).to(torch::kFloat64).mean().item<double>();
  }

 private:
  const std::shared_ptr<Sorter> sorter_ = std::make_shared<Sorter>();
  const Sequences train_;
  const Sequences test_;
};

}  // namespace

std::unique_ptr<LearnedModel> MakeSortingModel(uint64_t seed) {
  torch::manual_seed(seed);
  return std::make_unique<SortingModel>();
}

}  // namespace sluice::bench
