#ifndef SLUICE_WORKER_TORCH_TRAINING_EVALUATE_H_
#define SLUICE_WORKER_TORCH_TRAINING_EVALUATE_H_

#include "worker/data/dataset.h"
#include "worker/torch/models/image_classifier.h"
#include "worker/training/evaluation.h"

namespace sluice {

// Of all of `data`, which is not empty. Leaves the model in evaluation mode, where BatchNorm uses
// its running statistics. Throws what LibTorch does.
Evaluation Evaluate(ImageClassifier& model, const Dataset& data);

// Of logits [n, classes] and labels [n], int64: loss and shares as sums over the samples.
Evaluation SumsOf(const torch::Tensor& logits, const torch::Tensor& labels);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_EVALUATE_H_
