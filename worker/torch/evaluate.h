#ifndef SLUICE_WORKER_TORCH_EVALUATE_H_
#define SLUICE_WORKER_TORCH_EVALUATE_H_

#include "worker/dataset.h"
#include "worker/evaluation.h"
#include "worker/torch/image_classifier.h"

namespace sluice {

// Of all of `data`, which is not empty. Leaves the model in evaluation mode, where BatchNorm uses
// its running statistics. Throws what LibTorch does.
Evaluation Evaluate(ImageClassifier& model, const Dataset& data);

// Of logits [n, classes] and labels [n], int64: loss and shares as sums over the samples.
Evaluation SumsOf(const torch::Tensor& logits, const torch::Tensor& labels);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_EVALUATE_H_
