// Residual networks (He et al. 2015, "Deep Residual Learning for Image Recognition").

#ifndef SLUICE_WORKER_TORCH_MODELS_RESNET_H_
#define SLUICE_WORKER_TORCH_MODELS_RESNET_H_

#include <memory>

#include "worker/data/dataset.h"
#include "worker/torch/models/classifier.h"

namespace sluice {

// `layers` is 18, 34, 50, 101 or 152. Images of 64 pixels a side and more go through the paper's
// first layers: a convolution of 7 × 7 and a pooling. Smaller ones, from 16 on, go through one
// convolution of 3 × 3 without stride, as is usual for CIFAR. The tensors have
// the names of torchvision, and as there, in a bottleneck the 3 × 3 convolution has the stride.
// Parameters begin as in He et al. 2015, "Delving Deep into Rectifiers".
//
// Throws std::invalid_argument for smaller images.
std::shared_ptr<Classifier> MakeResNet(int layers, const SampleForm& form);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODELS_RESNET_H_
