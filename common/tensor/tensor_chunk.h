// A run of the vector's elements where it lies in memory: perhaps in several pieces, of which none
// need be aligned. What came over the wire lies like that, in the buffers it was received in; it is
// read there, and never copied together first.

#ifndef SLUICE_COMMON_TENSOR_TENSOR_CHUNK_H_
#define SLUICE_COMMON_TENSOR_TENSOR_CHUNK_H_

#include <cstdint>
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

// The same floats, for functions that take them at any address.
inline FloatPiece AsPiece(absl::Span<const float> floats) {
  return FloatPiece(reinterpret_cast<const UnalignedFloat*>(floats.data()), floats.size());
}

// Their bytes, as the wire has them.
inline absl::string_view BytesOf(absl::Span<const float> floats) {
  return {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)};
}

// Elements from `offset` of the vector on: those of the pieces, one after the other, or encoded
// ones.
struct TensorChunk {
  uint64_t offset = 0;
  std::vector<FloatPiece> pieces;
  std::shared_ptr<const void> owner;  // of the pieces' memory
  absl::optional<EncodedChunk> encoded;

  uint64_t size() const {
    uint64_t elements = encoded.has_value() ? encoded->how.count : 0;
    for (const FloatPiece& piece : pieces) elements += piece.size();
    return elements;
  }
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_TENSOR_CHUNK_H_
