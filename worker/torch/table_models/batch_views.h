// Parts of a batch as LibTorch's tensors, which use the batch's memory.

#ifndef SLUICE_WORKER_TORCH_TABLE_MODELS_BATCH_VIEWS_H_
#define SLUICE_WORKER_TORCH_TABLE_MODELS_BATCH_VIEWS_H_

#include <torch/types.h>

#include <cstdint>

#include "worker/data/batch.h"

namespace sluice {

// Ids [begin, begin + count) of a batch.
inline torch::Tensor IdsAt(const Batch& batch, int64_t begin, int64_t count) {
  auto* const ids = const_cast<int64_t*>(batch.ids.data());  // LibTorch has no const tensors
  return torch::from_blob(ids + begin, {count}, torch::kInt64);
}

inline torch::Tensor LabelsOf(const Batch& batch) {
  return torch::from_blob(const_cast<int64_t*>(batch.labels.data()),
                          {static_cast<int64_t>(batch.labels.size())}, torch::kInt64);
}

inline torch::Tensor TargetsOf(const Batch& batch) {
  return torch::from_blob(const_cast<float*>(batch.targets.data()),
                          {static_cast<int64_t>(batch.targets.size())}, torch::kFloat32);
}

// [samples, numbers of a sample].
inline torch::Tensor InputsOf(const Batch& batch) {
  return torch::from_blob(const_cast<float*>(batch.inputs.data()),
                          {batch.size(), batch.form.elements()}, torch::kFloat32);
}

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLE_MODELS_BATCH_VIEWS_H_
