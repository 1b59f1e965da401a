// Models with their data, for TorchWorkload.

#ifndef SLUICE_TOOLS_BENCH_STALENESS_TORCH_LEARNED_MODEL_H_
#define SLUICE_TOOLS_BENCH_STALENESS_TORCH_LEARNED_MODEL_H_

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/types/span.h"
#include "worker/data/dataset.h"

namespace sluice::bench {

// A module, and the data that it learns. Used by one thread.
class LearnedModel {
 public:
  virtual ~LearnedModel() = default;

  virtual torch::nn::Module& module() = 0;

  // The mean loss over these rows of the training set, with the module in training mode. The caller
  // may call backward() on it.
  virtual torch::Tensor Loss(absl::Span<const int64_t> rows) = 0;

  // The share of the test set that the module gets right, in evaluation mode.
  virtual double Accuracy() = 0;
};

// Makes a model whose random first parameters follow from `seed`.
using MakeLearnedModel = std::function<std::unique_ptr<LearnedModel>(uint64_t seed)>;

struct Images {
  Dataset train;
  Dataset test;
};

// A classifier of images. `name` is one that MakeModel() knows (worker/torch/models/models.h).
std::unique_ptr<LearnedModel> MakeImageModel(const std::string& name,
                                             const std::shared_ptr<const Images>& images,
                                             uint64_t seed);

// A transformer that sorts. Its input are kSortedTokens random tokens out of kTokenKinds; at each
// place it says which token stands there when they are in order. A token that it names right counts
// as right. The data, which are the same in all runs, are drawn, so nothing has to be downloaded.
inline constexpr int64_t kSortedTokens = 24;
inline constexpr int64_t kTokenKinds = 48;
inline constexpr int64_t kSortingRows = 60000;  // of the training set
std::unique_ptr<LearnedModel> MakeSortingModel(uint64_t seed);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_STALENESS_TORCH_LEARNED_MODEL_H_
