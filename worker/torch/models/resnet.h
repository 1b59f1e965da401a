// A model that is large enough for the transfer of its parameters to take a large share of a step.

#ifndef SLUICE_WORKER_TORCH_MODELS_RESNET_H_
#define SLUICE_WORKER_TORCH_MODELS_RESNET_H_

#include <memory>

#include "worker/torch/models/image_classifier.h"

namespace sluice {

// ResNet-18 (He et al. 2015, "Deep Residual Learning for Image Recognition") in the form that is
// usual for small images: the first convolution is 3 × 3 with stride 1, and no pooling follows it.
// 11,172,810 parameters (44.7 MB). Accepts grey images of 28 × 28 and of 32 × 32 pixels.
std::shared_ptr<ImageClassifier> MakeResNet18();

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODELS_RESNET_H_
