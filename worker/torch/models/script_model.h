// Models that were written in Python: traced or scripted, and saved as TorchScript.

#ifndef SLUICE_WORKER_TORCH_MODELS_SCRIPT_MODEL_H_
#define SLUICE_WORKER_TORCH_MODELS_SCRIPT_MODEL_H_

#include <memory>
#include <string>

#include "worker/data/dataset.h"
#include "worker/torch/models/classifier.h"

namespace sluice {

// Loads what torch.jit.save(torch.jit.script(model), path) wrote, or torch.jit.trace's result, with
// the parameters that are in the file. forward() must map [n, channels, rows, columns] to
// [n, classes]. The tensors have the names of the Python model's state_dict(), so a checkpoint of
// the server can be loaded into that model. A TorchScript file is a program: load only files that
// you trust.
//
// Throws std::invalid_argument, with the name of the file, if the file is not TorchScript, if the
// model has no parameter, or if forward() fails for samples of that form or has another number of
// outputs.
std::shared_ptr<Classifier> LoadScriptModel(const std::string& path, const SampleForm& form);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODELS_SCRIPT_MODEL_H_
