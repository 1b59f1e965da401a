// The first step of an encoding: turns the values of one chunk into bytes, and back.
//
// There is one class for each ValueTransform (folder transforms/). Users may write their own and
// add it to a TransformRegistry under a name: an encoding then refers to it by this name.
// codec.h calls transforms, on the worker's and on the server's side.

#ifndef SLUICE_COMMON_ENCODING_TRANSFORM_H_
#define SLUICE_COMMON_ENCODING_TRANSFORM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/encoding/encoding.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

// The facts about a chunk that a transform may need in addition to its values.
struct ChunkContext {
  // Seed for random choices. The same job, push and chunk always have the same seed.
  uint64_t seed = 0;
  // If the chunk consists of whole rows of a matrix: the number of columns. Otherwise 0.
  uint64_t columns = 0;
  // State that the transform keeps for this chunk from one push to the next; empty at first. Null
  // if the caller keeps no state.
  std::vector<float>* memory = nullptr;
};

// A transform has no state of its own, so any number of threads may use it at the same time.
class Transform {
 public:
  virtual ~Transform() = default;

  // Bytes per value: 1, 2 or 4. The byte layout needs it to split values into planes. Return 2 or
  // 4 only if the transform always makes exactly MostBytes() bytes, in values of this width.
  virtual size_t width() const { return 1; }

  // True if each value is encoded in width() bytes of its own. Any part of the bytes can then be
  // decoded separately.
  virtual bool by_value() const { return false; }

  // Encodes `values` and appends the bytes to `bytes`, which is empty. There is at least one value,
  // and all are finite. On entry, `how` holds the count, the transform, the byte layout and the
  // compressor. Encode() adds every other field that the decoder needs. It may also set
  // how->transform to another transform if it has used that one instead.
  virtual void Encode(absl::Span<const float> values, const Encoding& encoding,
                      const ChunkContext& context, ChunkEncoding* how,
                      std::string* bytes) const = 0;

  // Does the same for values that may be infinite or NaN. Returns false if one of them is, or if
  // the encoded numbers are not finite: the caller must then discard `how` and `bytes`. The default
  // checks all values first. A transform may override it to save that pass over the values.
  virtual bool EncodeIfFinite(absl::Span<const float> values, const Encoding& encoding,
                              const ChunkContext& context, ChunkEncoding* how,
                              std::string* bytes) const;

  // Returns the largest number of bytes that a chunk with this `how` can have; the decoder
  // allocates them. Returns BAD_CHUNK if a field that this transform reads has a value that is not
  // allowed. Callers call it before Decode().
  virtual absl::StatusOr<uint64_t> MostBytes(const ChunkEncoding& how) const = 0;

  // Decodes `bytes` and writes all elements of `values`, which has how.count of them. Decoded
  // values may be infinite or NaN. The bytes come from the network and can be anything: returns
  // BAD_CHUNK if they do not agree with `how`.
  virtual absl::Status Decode(absl::string_view bytes, const ChunkEncoding& how,
                              absl::Span<float> values) const = 0;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_TRANSFORM_H_
