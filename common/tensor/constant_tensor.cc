#include "common/tensor/constant_tensor.h"

#include <algorithm>
#include <map>

namespace sluice {

uint64_t ElementBytes(absl::string_view dtype) {
  static const auto* const bytes = new std::map<absl::string_view, uint64_t>{
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},   {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2},
      {"U16", 2},  {"F16", 2}, {"BF16", 2}, {"I32", 4},     {"U32", 4},     {"F32", 4},
      {"F64", 8},  {"I64", 8}, {"U64", 8},  {"C64", 8},     {"C128", 16},
  };
  const auto found = bytes->find(dtype);
  return found == bytes->end() ? 0 : found->second;
}

absl::optional<uint64_t> BytesOf(const std::vector<uint64_t>& shape, uint64_t element_bytes,
                                 uint64_t most) {
  // An empty tensor may have any other dimensions.
  if (std::count(shape.begin(), shape.end(), 0u) > 0) return 0;
  uint64_t bytes = element_bytes;
  for (const uint64_t dimension : shape) {
    if (bytes > most / dimension) return absl::nullopt;
    bytes *= dimension;
  }
  return bytes <= most ? absl::make_optional(bytes) : absl::nullopt;
}

uint64_t ConstantTensor::bytes() const {
  return BytesOf(shape, ElementBytes(dtype), UINT64_MAX).value_or(0);
}

uint64_t BytesOf(const std::vector<ConstantTensor>& constants) {
  uint64_t bytes = 0;
  for (const ConstantTensor& constant : constants) bytes += constant.bytes();
  return bytes;
}

}  // namespace sluice
