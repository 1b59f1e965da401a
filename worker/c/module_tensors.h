// Tensors of a model server, as sluice.h and as PlainTensor describe them.

#ifndef SLUICE_WORKER_C_MODULE_TENSORS_H_
#define SLUICE_WORKER_C_MODULE_TENSORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/c/sluice.h"
#include "worker/connection/module/module_session.h"
#include "worker/connection/module/plain_tensor.h"

namespace sluice {

// Copies the elements. INVALID_ARGUMENT if the type of elements is none of sluice.h.
absl::StatusOr<std::vector<PlainTensor>> PlainTensorsOf(
    absl::Span<const sluice_module_tensor> tensors);

// INVALID_ARGUMENT if a tensor has no name.
absl::StatusOr<NamedTensors> NamedTensorsOf(absl::Span<const sluice_module_tensor> tensors);

// The result shows `tensors` and `names`, which may be empty.
std::vector<sluice_module_tensor> OfC(const std::vector<PlainTensor>& tensors,
                                      const std::vector<std::string>& names = {});

}  // namespace sluice

#endif  // SLUICE_WORKER_C_MODULE_TENSORS_H_
