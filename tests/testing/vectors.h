// Short ways to write vectors and layouts in tests.

#ifndef SLUICE_TESTS_TESTING_VECTORS_H_
#define SLUICE_TESTS_TESTING_VECTORS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"

namespace sluice {

using Values = std::vector<float>;

// A tensor with one dimension.
struct Tensor {
  std::string name;
  uint32_t size = 1;
  RangeKind kind = RangeKind::kParameter;
};

// A layout of these tensors, in this order.
Layout LayoutOf(const std::vector<Tensor>& tensors);

// A layout of so many small tensors, of one and two elements in turn. Each name has 80 bytes, so
// that 60,000 of them are larger than a message.
Layout ManyTensors(size_t count);

// A layout of one tensor "w" with `size` parameters.
Layout ParametersOnly(uint32_t size);

// A chunk with `elements`, as it is received.
TensorChunk ChunkOf(uint64_t offset, absl::Span<const float> elements);

inline Values ValuesOf(absl::Span<const float> span) { return Values(span.begin(), span.end()); }

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_VECTORS_H_
