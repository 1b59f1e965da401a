// Tensors whose memory code without LibTorch reads and writes. Their types do not depend on
// LibTorch's defaults, such as torch::set_default_dtype().

#ifndef SLUICE_WORKER_TORCH_TABLES_FLOATS_H_
#define SLUICE_WORKER_TORCH_TABLES_FLOATS_H_

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "absl/types/span.h"

namespace sluice {

// Zeros of float32 in the CPU's memory.
inline torch::Tensor Floats(torch::IntArrayRef shape) {
  return torch::zeros(shape, torch::TensorOptions(torch::kFloat32).device(torch::kCPU));
}

// The elements of a tensor of float32. Throws std::logic_error if they do not lie one after the
// other in the CPU's memory, and c10::Error if they have another type.
inline absl::Span<float> FloatsOf(const torch::Tensor& tensor) {
  if (!tensor.device().is_cpu() || !tensor.is_contiguous()) {
    throw std::logic_error("a tensor is not contiguous on the CPU, expected memory of float32");
  }
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLES_FLOATS_H_
