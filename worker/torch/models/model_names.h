// The names of the models, for programs that do not see LibTorch's headers.

#ifndef SLUICE_WORKER_TORCH_MODELS_MODEL_NAMES_H_
#define SLUICE_WORKER_TORCH_MODELS_MODEL_NAMES_H_

#include <string>
#include <vector>

namespace sluice {

// The names that MakeModel() knows, except names of files.
std::vector<std::string> ModelNames();

// Whether the name is that of a file of TorchScript: it ends with ".pt" or ".pth".
bool IsScriptFile(const std::string& name);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODELS_MODEL_NAMES_H_
