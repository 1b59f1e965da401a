// The statistics of a model. The averages of its BatchNorm modules are running means for the server
// (common/tensor/running_means.h). Other buffers are pushed as values if a batch has changed them,
// and as no change otherwise: what is constant keeps its bits.

#ifndef SLUICE_WORKER_TORCH_BATCH_NORMS_H_
#define SLUICE_WORKER_TORCH_BATCH_NORMS_H_

#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "common/tensor/layout.h"
#include "common/tensor/running_means.h"

namespace sluice {

// A module that may hold the averages of a BatchNorm which other code computes implements this.
class BatchNormHolder {
 public:
  virtual ~BatchNormHolder() = default;
  virtual bool is_batch_norm() const = 0;
  // The weight of a batch; absent for a cumulative average, in which all batches weigh the same.
  virtual absl::optional<double> momentum() const = 0;
};

// Only the thread that trains the model may use it. The model must outlive it.
class BatchNorms {
 public:
  // Finds the modules of BatchNorm1d, 2d and 3d, and BatchNormHolders, that count their batches in
  // int64 and have averages of 32 or 64 bits: in 16 bits, roundings would be taken for batches.
  BatchNorms(torch::nn::Module& model, const Layout& layout);

  // All statistics, each tensor by itself, with a decay of 0.
  RunningMeans elements() const;

  // New parameters were pulled.
  void NotePull();

  // How much of what was pulled is left in the averages, after the batches since NotePull(); of
  // other statistics all, as far as known (PulledMeans::Subtract()). A module whose count of
  // batches has fallen is left out: its averages were set by hand.
  RunningMeans Decays() const;

 private:
  struct Norm {
    torch::nn::Module* module = nullptr;
    torch::Tensor batches;  // num_batches_tracked
    int64_t pulled = 0;     // batches at NotePull()
  };
  struct Statistic {
    absl::optional<size_t> norm;  // the index of its module; absent: it is no average
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  // Adds the module, and to `averages` the index that it has of the ranges of its averages.
  void Add(const std::string& path, torch::nn::Module& module, const Layout& layout,
           absl::flat_hash_map<const LayoutRange*, size_t>* averages);

  std::vector<Norm> norms_;
  std::vector<Statistic> statistics_;  // in ascending order
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_BATCH_NORMS_H_
