// A run of a vector's elements as it was received: in several buffers, at any alignment. The
// elements are read there, and are not copied together first.

#ifndef SLUICE_COMMON_TENSOR_TENSOR_CHUNK_H_
#define SLUICE_COMMON_TENSOR_TENSOR_CHUNK_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

// A float32, little-endian, at any address.
struct __attribute__((packed, may_alias)) UnalignedFloat {
  float value;
};
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire's float32 is little-endian");

using FloatPiece = absl::Span<const UnalignedFloat>;

// Converts aligned floats, for functions that take unaligned ones.
inline FloatPiece AsPiece(absl::Span<const float> floats) {
  return FloatPiece(reinterpret_cast<const UnalignedFloat*>(floats.data()), floats.size());
}

// The bytes of floats, as they are on the wire.
inline absl::string_view BytesOf(absl::Span<const float> floats) {
  return {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)};
}

// Elements of the vector, which begin at `offset`: either `pieces`, one after the other, or
// `encoded`.
struct TensorChunk {
  uint64_t offset = 0;
  std::vector<FloatPiece> pieces;
  std::shared_ptr<const void> owner;  // owns the pieces' memory
  absl::optional<EncodedChunk> encoded;
  // Another process may write the pieces' memory at any time.
  bool foreign = false;
  // No element's magnitude was larger when the elements were checked; infinity before that.
  float largest = std::numeric_limits<float>::infinity();

  uint64_t size() const {
    uint64_t elements = encoded.has_value() ? encoded->how.count : 0;
    for (const FloatPiece& piece : pieces) elements += piece.size();
    return elements;
  }
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_TENSOR_CHUNK_H_
