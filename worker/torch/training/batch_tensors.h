// A batch as LibTorch's tensors.

#ifndef SLUICE_WORKER_TORCH_TRAINING_BATCH_TENSORS_H_
#define SLUICE_WORKER_TORCH_TRAINING_BATCH_TENSORS_H_

#include <torch/types.h>

#include "worker/data/batch.h"

namespace sluice {

struct BatchTensors {
  torch::Tensor inputs;  // float32, [n, channels, rows, columns]
  torch::Tensor labels;  // int64, [n]
};

// The tensors own the memory of the batch, which is not copied.
BatchTensors TensorsOf(Batch batch);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_BATCH_TENSORS_H_
