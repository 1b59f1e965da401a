// How the elements of one chunk are encoded: all that a decoder must know beside the payload.

#ifndef SLUICE_COMMON_TENSOR_CHUNK_ENCODING_H_
#define SLUICE_COMMON_TENSOR_CHUNK_ENCODING_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

// What becomes of the values.
enum class ValueTransform {
  kFloat32,   // nothing
  kFloat16,   // IEEE 754 binary16
  kBfloat16,  // the upper half of a binary32
  kInt8,      // 8 bits, and a scale for each 256 values
  kSign,      // 1 bit, and a scale for each 1024 values
  kTopK,      // the largest values and their places
  kRandomK,   // values at places drawn at random, by a seed that both sides know
  kLowRank,   // of a matrix, the product of two narrow ones
  kCustom,    // a user's own: see Transform
};

// The order of the bytes that a transform gives.
enum class ByteLayout {
  kPlain,          // value by value
  kPlanes,         // the first bytes of all values, then the second bytes, and so on
  kNonzeroPlanes,  // a bit for each value, whether it is there, then the planes of those; others
                   // are 0
};

enum class Compressor {
  kNone,
  kZstd,
  kPdict,  // 4 bits for each of the 15 most frequent bytes
};

// Fields as those of the message of that name in proto/sluice/v1/tensor.proto. From the wire they
// are any numbers: Decode() checks them.
struct ChunkEncoding {
  uint64_t count = 0;  // elements of the chunk
  ValueTransform transform = ValueTransform::kFloat32;
  std::string custom;  // kCustom: its name
  ByteLayout byte_layout = ByteLayout::kPlain;
  Compressor compressor = Compressor::kNone;
  uint64_t kept = 0;     // kTopK, kRandomK: values in the payload
  bool half = false;     // kTopK, kRandomK: they are float16
  uint64_t seed = 0;     // kRandomK: of their places
  uint64_t columns = 0;  // kLowRank: of the matrix
  uint32_t rank = 0;     // kLowRank: columns of the narrow matrices
};

// Encoded elements of a vector, from `offset` on.
struct EncodedChunk {
  uint64_t offset = 0;
  ChunkEncoding how;
  absl::string_view payload;
  uint64_t checksum = 0;              // of the payload; see checksum.h
  std::shared_ptr<const void> owner;  // of the payload's memory
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_CHUNK_ENCODING_H_
