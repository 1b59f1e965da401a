// The types of tensors that have a name in safetensors.

#ifndef SLUICE_WORKER_TORCH_TENSOR_TYPES_H_
#define SLUICE_WORKER_TORCH_TENSOR_TYPES_H_

#include <torch/types.h>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace sluice {

// Nothing if LibTorch does not have the type.
absl::optional<torch::ScalarType> TypeNamed(absl::string_view dtype);

// Empty if the type has no name.
absl::string_view NameOf(torch::ScalarType type);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TENSOR_TYPES_H_
