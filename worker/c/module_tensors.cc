#include "worker/c/module_tensors.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/c/model.h"

namespace sluice {
namespace {

// The enumerators follow each other in both, from 0 and from SLUICE_ELEMENT_FLOAT32 on.
static_assert(static_cast<int>(ElementType::kBool) == SLUICE_ELEMENT_BOOL - SLUICE_ELEMENT_FLOAT32);

}  // namespace

absl::StatusOr<std::vector<PlainTensor>> PlainTensorsOf(
    absl::Span<const sluice_module_tensor> tensors) {
  std::vector<PlainTensor> plain;
  for (const sluice_module_tensor& tensor : tensors) {
    if (tensor.element < SLUICE_ELEMENT_FLOAT32 || tensor.element > SLUICE_ELEMENT_BOOL) {
      return absl::InvalidArgumentError(
          absl::StrCat("the element type of a tensor is ", tensor.element,
                       ", expected SLUICE_ELEMENT_FLOAT32 to SLUICE_ELEMENT_BOOL"));
    }
    plain.push_back({static_cast<ElementType>(tensor.element - SLUICE_ELEMENT_FLOAT32),
                     {tensor.shape, tensor.shape + tensor.dimensions},
                     tensor.requires_grad != 0,
                     std::string(static_cast<const char*>(tensor.data), tensor.size)});
  }
  return plain;
}

absl::StatusOr<NamedTensors> NamedTensorsOf(absl::Span<const sluice_module_tensor> tensors) {
  NamedTensors named;
  for (const sluice_module_tensor& tensor : tensors) {
    if (tensor.name == nullptr) return NoNameError("a gradient");
    named.names.emplace_back(tensor.name);
  }
  auto plain = PlainTensorsOf(tensors);
  if (!plain.ok()) return plain.status();
  named.tensors = *std::move(plain);
  return named;
}

std::vector<sluice_module_tensor> OfC(const std::vector<PlainTensor>& tensors,
                                      const std::vector<std::string>& names) {
  std::vector<sluice_module_tensor> of_c;
  for (const PlainTensor& tensor : tensors) {
    const char* const name = names.empty() ? nullptr : names[of_c.size()].c_str();
    of_c.push_back({name, static_cast<int32_t>(tensor.type) + SLUICE_ELEMENT_FLOAT32,
                    tensor.shape.data(), tensor.shape.size(), tensor.requires_grad ? 1 : 0,
                    tensor.data.data(), tensor.data.size()});
  }
  return of_c;
}

}  // namespace sluice
