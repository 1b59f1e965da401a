// Embeddings whose rows are on the server: no worker holds the table. README.md in this folder has
// an example.

#ifndef SLUICE_WORKER_TORCH_TABLES_REMOTE_EMBEDDING_H_
#define SLUICE_WORKER_TORCH_TABLES_REMOTE_EMBEDDING_H_

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/protocol/optimizer_table.h"
#include "common/tensor/table_spec.h"
#include "worker/torch/tables/row_puller.h"

namespace sluice {

struct UniqueIds;

struct RemoteEmbeddingOptions {
  uint32_t width = 0;  // elements of a row
  RowInitializer initializer = {RowInitializerKind::kNormal, 0.01f, 0};
  // The table's own; absent: the model's. Not averaging or LAMB.
  absl::optional<OptimizerOptions> optimizer = absl::nullopt;
  RowDivisor divisor = RowDivisor::kAllContributors;
  uint32_t admit_after = 0;  // see TableSpec
  uint64_t evict_after = 0;
  uint64_t max_rows = 0;
};

// The gradients of rows that were looked up.
struct RowTensor {
  std::vector<RowId> ids;  // ascending
  torch::Tensor rows;      // [ids, width], float32, contiguous, on the CPU
};

// The table of a module, at whose path in the model it stands: register_module("items", …) gives a
// table the name "items". A RemoteOptimizer of the model finds the module, and gives it rows; until
// then forward() throws std::logic_error.
//
// Only the thread that trains may use it. Copies share the table.
class RemoteEmbeddingImpl : public torch::nn::Module {
 public:
  explicit RemoteEmbeddingImpl(const RemoteEmbeddingOptions& options) : options_(options) {}

  // `ids`: int64 or int32, of any shape, not negative. Returns their rows in the shape [...,
  // width], on the device of `ids`. Each row is pulled once, though its id comes several times. In
  // training mode and with gradients enabled, the rows' gradients become part of the next push;
  // those of repeated ids, and of several calls before it, are added. Otherwise the rows are pulled
  // only. Throws std::invalid_argument for bad ids, and RemoteError.
  torch::Tensor forward(const torch::Tensor& ids);

  // Begins to pull the rows of `ids`. The next forward() uses them if it has the same ids. Throws
  // as forward().
  void prefetch(const torch::Tensor& ids);

  // ---- For RemoteOptimizer ----

  const RemoteEmbeddingOptions& options() const { return options_; }
  TableSpec SpecOf(const std::string& name) const;
  // From now on rows come from `source`. What was looked up is forgotten.
  void Bind(uint32_t table, std::shared_ptr<RowPuller> source);
  // Rows come from nowhere, unless they come from another source by now.
  void Unbind(const RowPuller& source);
  // Of all backward() since the last ForgetGradients(). A row without a gradient is left out.
  RowTensor Gradient() const;
  // Sets the gradients to 0: after zero_grad(), and after a step that has pushed them. A call of
  // forward() before it may still be followed by backward().
  void ForgetGradients();

 protected:
  // The rows of the different ids, and for each id the number of its row.
  struct Lookup {
    torch::Tensor rows;
    torch::Tensor places;  // int64, in the shape of the ids
  };
  Lookup LookUp(const torch::Tensor& ids);
  // Throws std::invalid_argument if ids may not have that shape.
  virtual void CheckShape(const torch::Tensor& /*ids*/) const {}

 private:
  struct Used {
    torch::Tensor ids;   // different and ascending
    torch::Tensor rows;  // a leaf
  };
  UniqueIds Different(const torch::Tensor& ids) const;
  void ForgetUnreachable();
  torch::Tensor Pull(const torch::Tensor& ids);
  std::unique_ptr<PendingRows> Start(const torch::Tensor& ids) const;

  const RemoteEmbeddingOptions options_;
  uint32_t table_ = 0;
  std::shared_ptr<RowPuller> source_;  // null until Bind()
  std::vector<Used> used_;             // that have a gradient, or may get one
  torch::Tensor prefetched_ids_;       // undefined without a prefetch
  std::unique_ptr<PendingRows> prefetched_;
};
TORCH_MODULE(RemoteEmbedding);

// The same with the sum or mean of bags of rows, as torch::nn::EmbeddingBag.
class RemoteEmbeddingBagImpl : public RemoteEmbeddingImpl {
 public:
  enum class Mode { kSum, kMean };

  RemoteEmbeddingBagImpl(const RemoteEmbeddingOptions& options, Mode mode)
      : RemoteEmbeddingImpl(options), mode_(mode) {}

  // `ids`: of all bags, one after the other; `offsets`: where each bag begins in it. Both have one
  // dimension and are int64 or int32; the offsets begin with 0 and do not descend. Returns
  // [bags, width]: an empty bag is 0. Throws as RemoteEmbedding does.
  torch::Tensor forward(const torch::Tensor& ids, const torch::Tensor& offsets);

 private:
  void CheckShape(const torch::Tensor& ids) const override;

  const Mode mode_;
};
TORCH_MODULE(RemoteEmbeddingBag);

// An embedding of a model, and its path in it.
struct NamedEmbedding {
  std::string name;
  std::shared_ptr<RemoteEmbeddingImpl> module;
};

// All of them, in the order of their paths. One with several paths (tied embeddings) is there once,
// under the first.
std::vector<NamedEmbedding> EmbeddingsOf(const torch::nn::Module& model);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLES_REMOTE_EMBEDDING_H_
