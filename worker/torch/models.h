// The models that sluice_train knows: classifiers of 28 × 28 grey images into 10 classes.

#ifndef SLUICE_WORKER_TORCH_MODELS_H_
#define SLUICE_WORKER_TORCH_MODELS_H_

#include <torch/torch.h>

#include <memory>
#include <string>

namespace sluice {

// Images of shape [n, 1, 28, 28] to logits of shape [n, 10].
class ImageClassifier : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(torch::Tensor images) = 0;
};

// "lenet" (LeCun et al. 1998, with rectified linear units and max pooling) or "mlp" (one hidden
// layer of 256 with batch normalization). Throws std::invalid_argument for other names.
std::shared_ptr<ImageClassifier> MakeModel(const std::string& name);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODELS_H_
