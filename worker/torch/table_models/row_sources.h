// Where a model's embeddings are. The same model trains with its tables on servers, or in one
// process with tensors in their place: a template takes one of these classes.

#ifndef SLUICE_WORKER_TORCH_TABLE_MODELS_ROW_SOURCES_H_
#define SLUICE_WORKER_TORCH_TABLE_MODELS_ROW_SOURCES_H_

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "worker/torch/tables/dense_twin.h"
#include "worker/torch/tables/remote_embedding.h"

namespace sluice {

// On servers. The arguments are those of RowsHere.
struct RowsOnServers {
  using Embedding = RemoteEmbedding;
  using Bag = RemoteEmbeddingBag;

  static Embedding MakeEmbedding(const std::string&, int64_t,
                                 const RemoteEmbeddingOptions& options) {
    return Embedding(options);
  }
  static Bag MakeBag(const std::string&, int64_t, const RemoteEmbeddingOptions& options) {
    return Bag(options, RemoteEmbeddingBagImpl::Mode::kSum);
  }
};

// In this process, with the same first values. `name` is the table's; `rows` counts its rows.
struct RowsHere {
  using Embedding = torch::nn::Embedding;
  using Bag = torch::nn::EmbeddingBag;

  static torch::Tensor Weight(const std::string& name, int64_t rows,
                              const RemoteEmbeddingOptions& options) {
    return FirstRows(RemoteEmbeddingImpl(options).SpecOf(name), rows);
  }
  static Embedding MakeEmbedding(const std::string& name, int64_t rows,
                                 const RemoteEmbeddingOptions& options) {
    return Embedding(
        torch::nn::EmbeddingOptions(rows, options.width)._weight(Weight(name, rows, options)));
  }
  static Bag MakeBag(const std::string& name, int64_t rows, const RemoteEmbeddingOptions& options) {
    return Bag(torch::nn::EmbeddingBagOptions(rows, options.width)
                   .mode(torch::kSum)
                   ._weight(Weight(name, rows, options)));
  }
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLE_MODELS_ROW_SOURCES_H_
