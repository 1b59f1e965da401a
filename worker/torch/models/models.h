// The models that sluice_train knows. worker/torch/models/README.md lists them with their sizes.

#ifndef SLUICE_WORKER_TORCH_MODELS_MODELS_H_
#define SLUICE_WORKER_TORCH_MODELS_MODELS_H_

#include <memory>
#include <string>

#include "worker/data/dataset.h"
#include "worker/torch/models/classifier.h"
#include "worker/torch/models/model_names.h"

namespace sluice {

// Makes the model `name` for samples of that form, with random parameters from LibTorch's generator
// (torch::manual_seed()). One of:
//   logistic            logistic regression: one linear layer
//   mlp                 one hidden layer of 256 with batch normalization
//   lenet               LeNet-5 (LeCun et al. 1998, with rectified linear units and max pooling)
//   resnet18 … 152      see resnet.h
//   vgg11 … vgg19-bn    see vgg.h
//   FILE.pt, FILE.pth   a model in TorchScript, see script_model.h
// Throws std::invalid_argument for another name, for a form that the model does not take, and for a
// file that is no such model.
std::shared_ptr<Classifier> MakeModel(const std::string& name, const SampleForm& form = {});

// Throws std::invalid_argument if the model cannot be trained on batches of one sample. An example
// is batch normalization of features of which a sample has one value each. Makes the model and runs
// it once, so it draws from LibTorch's generator. Also throws what MakeModel() throws.
void CheckTrainsOnOneSample(const std::string& name, const SampleForm& form = {});

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODELS_MODELS_H_
