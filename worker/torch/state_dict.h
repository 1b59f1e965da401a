// Reads and writes state dicts: files with a model's tensors by name. PyTorch's torch.load() reads
// the files that are written here. Safetensors files, and servers' checkpoints, can be read, too.

#ifndef SLUICE_WORKER_TORCH_STATE_DICT_H_
#define SLUICE_WORKER_TORCH_STATE_DICT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/layout.h"

namespace torch {
namespace nn {
class Module;
}  // namespace nn
}  // namespace torch

namespace sluice {

// Writes the layout's tensors and constants, each with the element type that it has in the worker's
// model. `values` has layout.size() elements; `constants` has the bytes of all constants, one after
// the other. Load the file in Python with load_state_dict(torch.load(path), strict=False): a tensor
// with several names has its first. UNAVAILABLE if it cannot be written.
absl::Status SaveStateDict(const Layout& layout, absl::Span<const float> values,
                           absl::string_view constants, const std::string& path);

// Sets the model's parameters and buffers from a file. The file must have all of them, except
// buffers of integers, and no other tensors of real numbers. `path` names one of:
// 1. a file that SaveStateDict() wrote;
// 2. a file of Python's torch.save(dict(model.state_dict()), path), which must be a plain dict;
// 3. a safetensors file;
// 4. a checkpoint of any number of servers, as CheckpointReader::Open() takes it: its file, or the
//    servers' --checkpoint-dir, and then with commas between the directories of other servers.
//    Every byte is checked. The optimizer's state, and rows of tables, are not read.
// Reading a file never runs code from it. After an error the model is unchanged. Errors:
//   NOT_FOUND         the file cannot be opened, or the directory has no checkpoint
//   DATA_LOSS         names the file that is damaged, missing, or of another checkpoint
//   INVALID_ARGUMENT  the file has none of these formats, or one server's part of a checkpoint; or
//   a
//                     tensor, which the message names, is missing, has another shape, is not dense
//                     and real, or does not belong to the model
absl::Status LoadStateDict(const std::string& path, torch::nn::Module& module);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_STATE_DICT_H_
