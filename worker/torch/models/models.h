// The models that sluice_train knows: classifiers of 28 × 28 grey images into 10 classes.

#ifndef SLUICE_WORKER_TORCH_MODELS_MODELS_H_
#define SLUICE_WORKER_TORCH_MODELS_MODELS_H_

#include <memory>
#include <string>

#include "worker/torch/models/image_classifier.h"

namespace sluice {

// "lenet" (LeCun et al. 1998, with rectified linear units and max pooling), "mlp" (one hidden layer
// of 256 with batch normalization) or "resnet18" (worker/torch/models/resnet.h). Throws
// std::invalid_argument for other names.
std::shared_ptr<ImageClassifier> MakeModel(const std::string& name);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODELS_MODELS_H_
