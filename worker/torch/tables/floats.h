// Tensors of float32 in the CPU's memory. Code that does not use LibTorch reads and writes their
// elements there. torch::set_default_dtype() does not change their type.

#ifndef SLUICE_WORKER_TORCH_TABLES_FLOATS_H_
#define SLUICE_WORKER_TORCH_TABLES_FLOATS_H_

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "absl/types/span.h"

namespace sluice {

// Returns a new tensor of zeros.
inline torch::Tensor Floats(torch::IntArrayRef shape) {
  return torch::zeros(shape, torch::TensorOptions(torch::kFloat32).device(torch::kCPU));
}

// Returns the elements of a tensor of float32. Throws std::logic_error if the tensor is not
// contiguous in the CPU's memory, and c10::Error if it has another type.
inline absl::Span<float> FloatsOf(const torch::Tensor& tensor) {
  if (!tensor.device().is_cpu() || !tensor.is_contiguous()) {
    throw std::logic_error("a tensor is not contiguous on the CPU, expected memory of float32");
  }
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLES_FLOATS_H_
