// The interface of the models that learners.h trains and evaluator.h evaluates.

#ifndef SLUICE_WORKER_TORCH_MODELS_IMAGE_CLASSIFIER_H_
#define SLUICE_WORKER_TORCH_MODELS_IMAGE_CLASSIFIER_H_

#include <torch/nn/module.h>

namespace sluice {

// forward() maps images of shape [n, 1, 28, 28] to logits of shape [n, 10].
class ImageClassifier : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(torch::Tensor images) = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODELS_IMAGE_CLASSIFIER_H_
