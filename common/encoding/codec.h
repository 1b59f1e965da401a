// Encodes and decodes the elements of one chunk, through all steps of an encoding.

#ifndef SLUICE_COMMON_ENCODING_CODEC_H_
#define SLUICE_COMMON_ENCODING_CODEC_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/encoding/encoding.h"
#include "common/encoding/transform.h"
#include "common/encoding/transform_registry.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

// Elements of the largest chunk that is encoded. A decoder that holds back nothing else may be made
// to allocate 4 bytes for each.
inline constexpr uint64_t kMostEncoded = uint64_t{1} << 18;

// `values`, elements from `offset` on, at least one and at most kMostEncoded of them, encoded; if
// that is plain, copied. If one of them is not finite they are sent as float32, so that their
// receiver sees it.
EncodedChunk EncodeValues(uint64_t offset, absl::Span<const float> values, const Encoding& encoding,
                          const ChunkContext& context, const TransformRegistry& transforms);

// Whether what is decoded is used at once, or is a part of more than the caches hold: then 16-bit
// and 32-bit floats are written past them, in half as much again of the speed. See StreamTo().
enum class Writes { kToCaches, kPastCaches };

// Writes the elements of `chunk` to `values`, which is as long as it says. CORRUPT_CHUNK if its
// checksum is wrong; BAD_CHUNK if it is not what it says, or too large; BAD_ARGUMENT if one of its
// steps is unknown here. After an error `values` hold anything. Takes memory for at most what
// `values` stand for, a few times.
absl::Status DecodeValues(const EncodedChunk& chunk, absl::Span<float> values,
                          const TransformRegistry& transforms, Writes writes = Writes::kToCaches);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_CODEC_H_
