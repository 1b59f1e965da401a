// Embeds the graph of WordNet: for each synset a row of a table.
//
// A triple (head, relation, tail) has the score Re(Σ head · relation · conj(tail)), which
// asymmetric relations can have, too (ComplEx: Trouillon et al. 2016, "Complex Embeddings for
// Simple Link Prediction"). Each tail competes with the other synsets of its batch.

#ifndef SLUICE_WORKER_TORCH_TABLE_MODELS_WORDNET_COMPLEX_H_
#define SLUICE_WORKER_TORCH_TABLE_MODELS_WORDNET_COMPLEX_H_

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "worker/data/tables/triple_data.h"
#include "worker/torch/table_models/batch_views.h"
#include "worker/torch/table_models/table_model.h"
#include "worker/torch/tables/remote_embedding.h"

namespace sluice {

// Learns from TripleData. The test compares a tail with all synsets; its metric is how often the
// right one is among the ten best.
template <typename Rows>
class WordnetComplex final : public TableModel {
 public:
  WordnetComplex() {
    RemoteEmbeddingOptions table;
    table.width = kWidth;
    table.initializer = {RowInitializerKind::kNormal, 0.1F, 1};
    synsets_ =
        register_module("synsets", Rows::MakeEmbedding("synsets", TripleData::kSynsets, table));
    // All are part of nearly each batch, so they are no table.
    relations_ =
        register_parameter("relations", 0.5 * torch::randn({TripleData::kRelations, kWidth}));
  }

  torch::Tensor Loss(const Batch& batch) override {
    const int64_t count = batch.size();
    const torch::Tensor wanted = WantedTails(batch);
    const torch::Tensor tails = synsets_->forward(IdsAt(batch, count, count));
    const torch::Tensor right = (wanted * tails).sum(1, true);
    const torch::Tensor wrong = wanted.matmul(Others(batch).t());
    return -torch::log_softmax(torch::cat({right, wrong}, 1), 1).select(1, 0).mean();
  }

 private:
  static constexpr int64_t kWidth = 64;  // 32 complex numbers
  static constexpr int64_t kBest = 10;

  TestResult Test(const Batch& test) override {
    const torch::Tensor scores = WantedTails(test).matmul(Others(test).t());
    const torch::Tensor tails = IdsAt(test, test.size(), test.size()).unsqueeze(1);
    const torch::Tensor better = (scores > scores.gather(1, tails)).sum(1);
    const std::string name = "hits at 10";
    return {test.size(),
            -torch::log_softmax(scores, 1).gather(1, tails).mean().template item<double>(),
            {{name, name, (better < kBest).to(torch::kFloat64).mean().template item<double>()}}};
  }

  torch::Tensor Others(const Batch& batch) {
    const int64_t before = 2 * batch.size();
    return synsets_->forward(IdsAt(batch, before, static_cast<int64_t>(batch.ids.size()) - before));
  }

  // head · relation, so that the score of a tail is its product with this: the first half of a row
  // has the real parts of its numbers.
  torch::Tensor WantedTails(const Batch& batch) {
    const auto head = synsets_->forward(IdsAt(batch, 0, batch.size())).chunk(2, 1);
    const auto relation = relations_.index_select(0, LabelsOf(batch)).chunk(2, 1);
    return torch::cat({head[0] * relation[0] - head[1] * relation[1],
                       head[0] * relation[1] + head[1] * relation[0]},
                      1);
  }

  typename Rows::Embedding synsets_ = nullptr;
  torch::Tensor relations_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLE_MODELS_WORDNET_COMPLEX_H_
