// Translates LibTorch's tensors to PlainTensors, and back.

#ifndef SLUICE_WORKER_TORCH_REMOTE_MODULE_TENSORS_H_
#define SLUICE_WORKER_TORCH_REMOTE_MODULE_TENSORS_H_

#include <torch/types.h>

#include "worker/connection/module/plain_tensor.h"

namespace sluice {

// Copies the elements. `requires_grad` is the tensor's. Throws std::invalid_argument if the tensor
// is not dense or has an element type that ElementType lacks.
PlainTensor ToPlain(const torch::Tensor& tensor);

// Copies nothing: the result, on the CPU, owns the bytes. It requires no gradient.
torch::Tensor ToTorch(PlainTensor plain);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_REMOTE_MODULE_TENSORS_H_
