// Encodes and decodes the elements of one chunk, with all three steps of an encoding.
//
// Workers encode gradients and decode parameters; servers do the reverse. Any number of threads may
// call these functions at the same time.

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

// The largest number of elements of an encoded chunk. A sender can thus make a decoder allocate at
// most 4 bytes for each of these, however small its message is.
inline constexpr uint64_t kMostEncoded = uint64_t{1} << 18;

// Encodes `values`, 1 to kMostEncoded elements of a vector; the first is element `offset`. The
// result owns its memory. If a value is infinite or NaN, all of the chunk is encoded as float32, so
// that the receiver sees that value. `transforms` must have float32 and the encoding's transform.
EncodedChunk EncodeValues(uint64_t offset, absl::Span<const float> values, const Encoding& encoding,
                          const ChunkContext& context, const TransformRegistry& transforms);

// The way in which decoded values are written. kPastCaches is 1.5 times as fast for 16-bit and
// 32-bit floats if the whole vector is larger than the caches. Use kToCaches if the values are used
// at once. See StreamTo().
enum class Writes { kToCaches, kPastCaches };

// Decodes `chunk` and writes its elements to `values`, whose size must be chunk.how.count. The
// chunk comes from the network and can be anything. After an error, the content of `values` is
// undefined. Allocates at most a few times the size of `values`. Errors:
//   CORRUPT_CHUNK  the checksum is wrong
//   BAD_CHUNK      the payload does not agree with chunk.how, or the chunk is too large
//   BAD_ARGUMENT   the byte layout or the compressor is unknown, or `transforms` does not have the
//                  transform
absl::Status DecodeValues(const EncodedChunk& chunk, absl::Span<float> values,
                          const TransformRegistry& transforms, Writes writes = Writes::kToCaches);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_CODEC_H_
