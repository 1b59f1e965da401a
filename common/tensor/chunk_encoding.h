// Describes how the elements of one chunk are encoded. A decoder needs it and the payload.

#ifndef SLUICE_COMMON_TENSOR_CHUNK_ENCODING_H_
#define SLUICE_COMMON_TENSOR_CHUNK_ENCODING_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

// How values are transformed.
enum class ValueTransform {
  kFloat32,   // not at all
  kFloat16,   // IEEE 754 binary16
  kBfloat16,  // the upper half of a binary32
  kInt8,      // 8 bits, and a scale for each 256 values
  kSign,      // 1 bit, and a scale for each 1024 values
  kTopK,      // the largest values and their places
  kRandomK,   // values at random places, drawn from a seed that both sides know
  kLowRank,   // a matrix as the product of two narrow ones
  kCustom,    // a user's own Transform
};

// The order of the bytes that a transform has made.
enum class ByteLayout {
  kPlain,          // value by value
  kPlanes,         // the first bytes of all values, then the second bytes, and so on
  kNonzeroPlanes,  // a bit for each value, which says whether it is not 0; then the planes of the
                   // values that are not 0
};

enum class Compressor {
  kNone,
  kZstd,
  kPdict,  // 4 bits for each of the 15 most frequent bytes
};

// The fields of the message with the same name in proto/sluice/v1/tensor.proto. Values from the
// wire may be any numbers: Decode() checks them.
struct ChunkEncoding {
  uint64_t count = 0;  // elements of the chunk
  ValueTransform transform = ValueTransform::kFloat32;
  std::string custom;  // kCustom: the transform's name
  ByteLayout byte_layout = ByteLayout::kPlain;
  Compressor compressor = Compressor::kNone;
  uint64_t kept = 0;     // kTopK, kRandomK: values in the payload
  bool half = false;     // kTopK, kRandomK: those values are float16
  uint64_t seed = 0;     // kRandomK: decides their places
  uint64_t columns = 0;  // kLowRank: columns of the matrix
  uint32_t rank = 0;     // kLowRank: columns of the narrow matrices
};

// Encoded elements of a vector, which begin at `offset`.
struct EncodedChunk {
  uint64_t offset = 0;
  // `offset` and how.count are those of the whole vector, though the receiver holds one stripe: it
  // takes the elements that lie there.
  bool of_vector = false;
  ChunkEncoding how;
  absl::string_view payload;
  uint64_t checksum = 0;              // of the payload; see common/encoding/checksum.h
  std::shared_ptr<const void> owner;  // owns the payload's memory
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_CHUNK_ENCODING_H_
