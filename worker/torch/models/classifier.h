// The interface of the models that learners.h trains and evaluator.h evaluates.

#ifndef SLUICE_WORKER_TORCH_MODELS_CLASSIFIER_H_
#define SLUICE_WORKER_TORCH_MODELS_CLASSIFIER_H_

#include <torch/nn/module.h>

namespace sluice {

// forward() maps samples of shape [n, channels, rows, columns] to logits of shape [n, classes].
class Classifier : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(torch::Tensor samples) = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODELS_CLASSIFIER_H_
