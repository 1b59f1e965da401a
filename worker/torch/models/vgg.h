// The networks of Simonyan and Zisserman 2014, "Very Deep Convolutional Networks for Large-Scale
// Image Recognition".

#ifndef SLUICE_WORKER_TORCH_MODELS_VGG_H_
#define SLUICE_WORKER_TORCH_MODELS_VGG_H_

#include <memory>

#include "worker/data/dataset.h"
#include "worker/torch/models/classifier.h"

namespace sluice {

// `layers` is 11, 13, 16 or 19: configurations A, B, D and E of the paper. `normalizes` adds batch
// normalization after each convolution. Images of 64 pixels a side and more go through the paper's
// three linear layers with dropout, behind a pooling to 7 × 7. Smaller ones go through one linear
// layer, as is usual for CIFAR; those of less than 32 are padded to that with the mean, and must
// have at least 16. The tensors have the names and the first parameters of torchvision.
//
// Throws std::invalid_argument for smaller images.
std::shared_ptr<Classifier> MakeVgg(int layers, bool normalizes, const SampleForm& form);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODELS_VGG_H_
