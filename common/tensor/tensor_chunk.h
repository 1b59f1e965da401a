// A run of a vector's elements as it was received: in several buffers, at any alignment. The
// elements are read there, and are not copied together first.

#ifndef SLUICE_COMMON_TENSOR_TENSOR_CHUNK_H_
#define SLUICE_COMMON_TENSOR_TENSOR_CHUNK_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/tensor/chunk_encoding.h"
#include "common/tensor/layout.h"
#include "common/tensor/stripes.h"

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

// Elements of the vector, or of the stripe that the receiver holds, which begin at `offset`: either
// `pieces`, one after the other, or `encoded`.
struct TensorChunk {
  uint64_t offset = 0;
  std::vector<FloatPiece> pieces;
  std::shared_ptr<const void> owner;  // owns the pieces' memory
  absl::optional<EncodedChunk> encoded;
  // If present, only those elements of `encoded` that lie in that stripe: it is a chunk of the
  // whole vector. TakeStripe() sets it.
  absl::optional<Stripe> stripe;
  // Another process may write the pieces' memory at any time.
  bool foreign = false;
  // No element's magnitude was larger when the elements were checked; infinity before that.
  float largest = std::numeric_limits<float>::infinity();

  uint64_t size() const {
    uint64_t elements = encoded.has_value() ? SizeOf(*encoded) : 0;
    for (const FloatPiece& piece : pieces) elements += piece.size();
    return elements;
  }
  // Elements that are decoded, or read.
  uint64_t work() const { return encoded.has_value() ? encoded->how.count : size(); }

 private:
  uint64_t SizeOf(const EncodedChunk& chunk) const {
    if (!stripe.has_value()) return chunk.how.count;
    return stripe->all.Before(stripe->index, chunk.offset + chunk.how.count) - offset;
  }
};

// Makes an encoded chunk of the whole vector (EncodedChunk::of_vector) one of the stripe that the
// receiver holds, whose layout this is. Does nothing to other chunks, and none where one server
// holds the whole vector. BAD_CHUNK if the chunk is not inside the vector, or has no element of the
// stripe.
absl::Status TakeStripe(const Layout& layout, TensorChunk& chunk);

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_TENSOR_CHUNK_H_
