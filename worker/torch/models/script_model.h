// Models that were written in Python: traced or scripted, and saved as TorchScript.

#ifndef SLUICE_WORKER_TORCH_MODELS_SCRIPT_MODEL_H_
#define SLUICE_WORKER_TORCH_MODELS_SCRIPT_MODEL_H_

#include <memory>
#include <string>

#include "worker/data/dataset.h"
#include "worker/torch/models/classifier.h"

namespace sluice {

// Loads what torch.jit.save(torch.jit.script(model), path) wrote, with the parameters that are in
// the file, on the CPU. forward() must map [n, channels, rows, columns] to [n, classes]. The
// tensors have the names of the Python model's state_dict(), so a checkpoint of the server can be
// loaded into that model; buffers that are not persistent are there, too, so load it with
// strict=False. A TorchScript file is a program: load only files that you trust.
//
// torch.jit.trace() fixes what dropout and batch normalization did while it traced, so that
// training and evaluation do the same. A model that was traced in training mode is refused: it
// would change its statistics while it is evaluated.
//
// Throws std::invalid_argument, with the name of the file, if the file cannot be read or is not
// TorchScript, if no parameter can be trained, if forward() fails for samples of that form or has
// another number of outputs, or if evaluation changes a buffer.
std::shared_ptr<Classifier> LoadScriptModel(const std::string& path, const SampleForm& form);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODELS_SCRIPT_MODEL_H_
