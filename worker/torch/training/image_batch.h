// Converts images of a dataset to tensors for the models.

#ifndef SLUICE_WORKER_TORCH_TRAINING_IMAGE_BATCH_H_
#define SLUICE_WORKER_TORCH_TRAINING_IMAGE_BATCH_H_

#include <torch/types.h>

#include <cstdint>

#include "absl/types/span.h"
#include "worker/data/dataset.h"

namespace sluice {

struct ImageBatch {
  // float32, [n, 1, rows, columns]. A pixel is (p / 255 − 0.286) / 0.353: these are the mean and
  // the standard deviation of Fashion-MNIST's training images, which fit MNIST's well enough.
  torch::Tensor images;
  torch::Tensor labels;  // int64, [n]
};

// Makes a batch of the images `rows` of `data`, in this order. Each row is in [0, data.size()).
ImageBatch MakeImageBatch(const Dataset& data, absl::Span<const int64_t> rows);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_IMAGE_BATCH_H_
