// Reads and writes state dicts, which hold a model's tensors by name. PyTorch's torch.load() opens
// the files that are written here. Safetensors files, and so a server's checkpoints, can be read
// too.

#ifndef SLUICE_WORKER_TORCH_STATE_DICT_H_
#define SLUICE_WORKER_TORCH_STATE_DICT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/layout.h"

namespace torch {
namespace nn {
class Module;
}  // namespace nn
}  // namespace torch

namespace sluice {

// Writes the layout's tensors, each with the element type that it has in the worker's model. A
// layout has no integer buffers (such as BatchNorm's num_batches_tracked), so load the file in
// Python with load_state_dict(torch.load(path), strict=False). UNAVAILABLE if the file cannot be
// written.
absl::Status SaveStateDict(const Layout& layout, absl::Span<const float> values,
                           const std::string& path);

// Sets the model's parameters and floating-point buffers from a file. The file is one of:
// 1. a file that SaveStateDict() wrote;
// 2. a file of Python's torch.save(dict(model.state_dict()), path), which must be a plain dict;
// 3. a safetensors file. Every byte of a checkpoint is checked; the optimizer's state is ignored.
// Reading runs no code. NOT_FOUND if the file does not exist. DATA_LOSS if a safetensors file is
// damaged. INVALID_ARGUMENT if another file cannot be read, or it names the first tensor that is
// missing, has another shape, or does not belong to the model.
absl::Status LoadStateDict(const std::string& path, torch::nn::Module& module);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_STATE_DICT_H_
