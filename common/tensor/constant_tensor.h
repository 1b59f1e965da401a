// A tensor of a model that is not trained: a frozen parameter, a mask, a table of integers. It is
// not in the vector. The server keeps the first worker's bytes, and gives them to every other
// worker that joins.

#ifndef SLUICE_COMMON_TENSOR_CONSTANT_TENSOR_H_
#define SLUICE_COMMON_TENSOR_CONSTANT_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace sluice {

struct ConstantTensor {
  std::string name;
  std::vector<uint64_t> shape;  // empty for a scalar; 0 is allowed
  std::string dtype;            // its name in safetensors, for example "I64"

  // The bytes of all elements. Only of a tensor whose layout is valid.
  uint64_t bytes() const;

  friend bool operator==(const ConstantTensor& a, const ConstantTensor& b) {
    return a.name == b.name && a.shape == b.shape && a.dtype == b.dtype;
  }
};

// The bytes of one element of that type; 0 if Sluice has no such type.
uint64_t ElementBytes(absl::string_view dtype);

// The bytes of a tensor with that shape; absent if they are more than `most`.
absl::optional<uint64_t> BytesOf(const std::vector<uint64_t>& shape, uint64_t element_bytes,
                                 uint64_t most);

// The bytes of all of them.
uint64_t BytesOf(const std::vector<ConstantTensor>& constants);

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_CONSTANT_TENSOR_H_
