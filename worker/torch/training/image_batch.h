// Converts images of a dataset to tensors for the models.

#ifndef SLUICE_WORKER_TORCH_TRAINING_IMAGE_BATCH_H_
#define SLUICE_WORKER_TORCH_TRAINING_IMAGE_BATCH_H_

#include <torch/types.h>

#include <cstdint>

#include "absl/types/span.h"
#include "worker/data/dataset.h"

namespace sluice {

struct ImageBatch {
  torch::Tensor
      images;  // float32, [n, 1, rows, columns]; see image_batch.cc for mean and deviation
  torch::Tensor labels;  // int64, [n]
};

// Makes a batch of these rows of `data`, in this order.
ImageBatch MakeImageBatch(const Dataset& data, absl::Span<const int64_t> rows);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_IMAGE_BATCH_H_
