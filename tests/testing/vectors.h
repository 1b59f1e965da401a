// Vectors and layouts for tests, each in a few words.

#ifndef SLUICE_TESTS_TESTING_VECTORS_H_
#define SLUICE_TESTS_TESTING_VECTORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"

namespace sluice {

using Values = std::vector<float>;

// A tensor of one dimension.
struct Tensor {
  std::string name;
  uint32_t size = 1;
  RangeKind kind = RangeKind::kParameter;
};

// Of these tensors, one after the other.
Layout LayoutOf(const std::vector<Tensor>& tensors);

// Of one tensor "w" of parameters.
Layout ParametersOnly(uint32_t size);

// `elements` as they come from the wire.
TensorChunk ChunkOf(uint64_t offset, absl::Span<const float> elements);

inline Values ValuesOf(absl::Span<const float> span) { return Values(span.begin(), span.end()); }

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_VECTORS_H_
