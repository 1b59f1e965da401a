#include "worker/torch/tensor_types.h"

namespace sluice {
namespace {

constexpr struct {
  absl::string_view name;
  torch::ScalarType type;
} kTypes[] = {
    {"BOOL", torch::kBool},   {"U8", torch::kUInt8},         {"I8", torch::kInt8},
    {"I16", torch::kInt16},   {"I32", torch::kInt32},        {"I64", torch::kInt64},
    {"F16", torch::kFloat16}, {"BF16", torch::kBFloat16},    {"F32", torch::kFloat32},
    {"F64", torch::kFloat64}, {"C64", torch::kComplexFloat}, {"C128", torch::kComplexDouble},
};

}  // namespace

absl::optional<torch::ScalarType> TypeNamed(absl::string_view dtype) {
  for (const auto& known : kTypes) {
    if (known.name == dtype) return known.type;
  }
  return absl::nullopt;
}

absl::string_view NameOf(torch::ScalarType type) {
  for (const auto& known : kTypes) {
    if (known.type == type) return known.name;
  }
  return "";
}

}  // namespace sluice
