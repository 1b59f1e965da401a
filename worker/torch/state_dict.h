// State dicts: a model's tensors by name, in files that PyTorch's torch.load() opens, and in
// safetensors files, a server's checkpoints among them.

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

// Writes a dict of the layout's tensors, each of the type it has in the worker's model. Buffers
// that are no floats, such as BatchNorm's num_batches_tracked, are not in a layout: in Python,
// load_state_dict(torch.load(path), strict=False). UNAVAILABLE if the file cannot be written.
absl::Status SaveStateDict(const Layout& layout, absl::Span<const float> values,
                           const std::string& path);

// Sets the model's parameters and floating buffers to those of a file that SaveStateDict() wrote,
// or Python's torch.save(dict(model.state_dict()), path): a plain dict, since C++ reads no other;
// or of a safetensors file. Of a checkpoint every byte is checked, and what is the optimizer's left
// aside. Reading runs no code. NOT_FOUND if there is no such file; DATA_LOSS if a safetensors file
// is damaged; INVALID_ARGUMENT says what is wrong with another, or names the first tensor that is
// missing, has another shape, or is not the model's.
absl::Status LoadStateDict(const std::string& path, torch::nn::Module& module);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_STATE_DICT_H_
