// Embeds the knowledge graph of WordNet: for each of 117,659 synsets a row of a table on the
// server. table_training.h tells how to run it; it needs Debian's package wordnet-base.
//
// A triple (head, relation, tail) has the score Re(Σ head · relation · conj(tail)), which
// asymmetric relations can have, too (ComplEx: Trouillon et al. 2016, "Complex Embeddings for
// Simple Link Prediction"). Each tail competes with kFalse others of its batch and at random.

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "worker/torch/examples/sample_numbers.h"
#include "worker/torch/examples/table_training.h"
#include "worker/torch/examples/wordnet_graph.h"

namespace sluice::examples {
namespace {

constexpr int64_t kWidth = 64;         // 32 complex numbers
constexpr int64_t kSynsets = 117'659;  // of WordNet 3.0; for the tensor of a single process
constexpr int64_t kRelations = 64;     // at most
constexpr int64_t kFalse = 256;        // tails at random that a batch's triples are compared with
constexpr int64_t kTested = 1000;      // triples of the test

RemoteEmbeddingOptions TableOf(float scale) {
  RemoteEmbeddingOptions options;
  options.width = kWidth;
  options.initializer = {RowInitializerKind::kNormal, scale, 1};
  return options;
}

std::string Folder() {
  const char* const folder = std::getenv("WORDNET_DIR");
  return folder == nullptr ? "/usr/share/wordnet" : folder;
}

class Wordnet {
 public:
  static constexpr int64_t kBatch = 1024;
  static constexpr int64_t kBatches = 250;  // nearly all triples
  static constexpr double kRate = 0.1;

  template <typename Tables>
  struct Model : torch::nn::Module {
    Model() {
      synsets =
          register_module("synsets", Tables::MakeEmbedding("synsets", kSynsets, TableOf(0.1f)));
      relations = register_parameter("relations", 0.5 * torch::randn({kRelations, kWidth}));
    }
    typename Tables::Embedding synsets = nullptr;
    torch::Tensor relations;  // all are part of nearly each batch, so they are no table
  };

  struct Batch {
    torch::Tensor heads, relations, tails;  // [triples]
    torch::Tensor others;                   // [kFalse] synsets
  };

  Wordnet() : graph_(ReadWordnet(Folder())) {
    TORCH_CHECK(graph_.synsets <= kSynsets, "this WordNet has ", graph_.synsets,
                " synsets, expected at most ", kSynsets, ", those of version 3.0");
    TORCH_CHECK(static_cast<int64_t>(graph_.relations.size()) <= kRelations);
  }

  // Triples at random, each as often as any other.
  Batch MakeBatch(int64_t first, int64_t count) const {
    Batch batch = BatchOf(count);
    for (int64_t i = 0; i < count; ++i) {
      SampleNumbers numbers(/*seed=*/0, static_cast<uint64_t>(first + i));
      Put(graph_.train[numbers() % graph_.train.size()], i, batch);
    }
    // The same for all workers of a batch, so that its loss does not depend on their number.
    SampleNumbers numbers(/*seed=*/1, static_cast<uint64_t>(first / kBatch));
    batch.others = torch::empty({kFalse}, torch::kInt64);
    for (int64_t i = 0; i < kFalse; ++i) {
      batch.others.data_ptr<int64_t>()[i] =
          static_cast<int64_t>(numbers() % static_cast<uint64_t>(graph_.synsets));
    }
    return batch;
  }

  template <typename Model>
  torch::Tensor Loss(Model& model, const Batch& batch) const {
    const torch::Tensor wanted = WantedTails(model, batch);
    const torch::Tensor right = (wanted * model.synsets->forward(batch.tails)).sum(1, true);
    const torch::Tensor wrong = wanted.matmul(model.synsets->forward(batch.others).t());
    return -torch::log_softmax(torch::cat({right, wrong}, 1), 1).select(1, 0).mean();
  }

  // The loss, and how often the right tail is among the ten best of all synsets.
  template <typename Model>
  void Tell(Model& model, int epoch) const {
    Batch test = BatchOf(kTested);
    for (int64_t i = 0; i < kTested; ++i) {
      SampleNumbers numbers(/*seed=*/2, static_cast<uint64_t>(i));
      Put(graph_.test[numbers() % graph_.test.size()], i, test);
    }
    const torch::Tensor all = model.synsets->forward(torch::arange(graph_.synsets));
    const torch::Tensor scores = WantedTails(model, test).matmul(all.t());
    const torch::Tensor right = scores.gather(1, test.tails.unsqueeze(1));
    const torch::Tensor better = (scores > right).sum(1);
    std::cout << "epoch " << epoch << ": test loss "
              << -torch::log_softmax(scores, 1)
                      .gather(1, test.tails.unsqueeze(1))
                      .mean()
                      .template item<float>()
              << ", " << 100 * (better < 10).to(torch::kFloat32).mean().template item<float>()
              << " % of the tails among the ten best of " << graph_.synsets << std::endl;
  }

 private:
  static Batch BatchOf(int64_t count) {
    return {torch::empty({count}, torch::kInt64),
            torch::empty({count}, torch::kInt64),
            torch::empty({count}, torch::kInt64),
            {}};
  }

  static void Put(const Triple& triple, int64_t place, Batch& batch) {
    batch.heads.data_ptr<int64_t>()[place] = triple.head;
    batch.relations.data_ptr<int64_t>()[place] = triple.relation;
    batch.tails.data_ptr<int64_t>()[place] = triple.tail;
  }

  // head · relation, so that the score of a tail is its product with this: the first half of a row
  // has the real parts of its numbers.
  template <typename Model>
  static torch::Tensor WantedTails(Model& model, const Batch& batch) {
    const auto head = model.synsets->forward(batch.heads).chunk(2, 1);
    const auto relation = model.relations.index_select(0, batch.relations).chunk(2, 1);
    return torch::cat({head[0] * relation[0] - head[1] * relation[1],
                       head[0] * relation[1] + head[1] * relation[0]},
                      1);
  }

  const WordnetGraph graph_;
};

}  // namespace
}  // namespace sluice::examples

int main(int argc, char** argv) {
  return sluice::examples::Main<sluice::examples::Wordnet>(argc, argv);
}
