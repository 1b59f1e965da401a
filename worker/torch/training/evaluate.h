#ifndef SLUICE_WORKER_TORCH_TRAINING_EVALUATE_H_
#define SLUICE_WORKER_TORCH_TRAINING_EVALUATE_H_

#include "worker/data/dataset.h"
#include "worker/torch/models/classifier.h"
#include "worker/training/evaluation.h"

namespace sluice {

// Evaluates the model on all of `data`, which must not be empty. Leaves the model in evaluation
// mode, in which BatchNorm uses its running statistics. Throws LibTorch's exceptions. `listener`
// may be null.
Evaluation Evaluate(Classifier& model, const Dataset& data,
                    const EvaluationListener& listener = nullptr);

// Returns loss, top-1 and top-5 as sums over the samples, not as means and shares: Evaluate() adds
// the sums of several batches. `logits` is [n, classes] of floats, `labels` is [n] of int64.
Evaluation SumsOf(const torch::Tensor& logits, const torch::Tensor& labels);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_EVALUATE_H_
