#include "worker/torch/remote_module/tensors.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

struct TypePair {
  ElementType plain;
  torch::ScalarType torch;
};

constexpr TypePair kTypePairs[] = {
    {ElementType::kFloat32, torch::kFloat32}, {ElementType::kFloat64, torch::kFloat64},
    {ElementType::kFloat16, torch::kFloat16}, {ElementType::kBFloat16, torch::kBFloat16},
    {ElementType::kInt64, torch::kInt64},     {ElementType::kInt32, torch::kInt32},
    {ElementType::kUint8, torch::kUInt8},     {ElementType::kBool, torch::kBool},
};

ElementType PlainType(torch::ScalarType type) {
  for (const TypePair& pair : kTypePairs) {
    if (pair.torch == type) return pair.plain;
  }
  throw std::invalid_argument(
      absl::StrCat("a tensor has elements of ", c10::toString(type),
                   "; a remote module takes real numbers, integers and bool"));
}

torch::ScalarType TorchType(ElementType type) {
  for (const TypePair& pair : kTypePairs) {
    if (pair.plain == type) return pair.torch;
  }
  return torch::kFloat32;
}

}  // namespace

PlainTensor ToPlain(const torch::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != torch::kStrided) {
    throw std::invalid_argument(
        "a remote module takes dense tensors; found one that is sparse or "
        "undefined");
  }
  PlainTensor plain;
  plain.type = PlainType(tensor.scalar_type());
  plain.shape = tensor.sizes().vec();
  plain.requires_grad = tensor.requires_grad();
  const torch::Tensor dense = tensor.detach().to(torch::kCPU).contiguous();
  plain.data.assign(static_cast<const char*>(dense.data_ptr()), dense.nbytes());
  return plain;
}

torch::Tensor ToTorch(PlainTensor plain) {
  auto* const bytes = new std::string(std::move(plain.data));
  return torch::from_blob(
      bytes->data(), plain.shape, [bytes](void*) { delete bytes; },
      torch::TensorOptions().dtype(TorchType(plain.type)));
}

}  // namespace sluice
