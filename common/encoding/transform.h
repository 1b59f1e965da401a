// The first step of an encoding: one class for each ValueTransform, and for each of a user's own.

#ifndef SLUICE_COMMON_ENCODING_TRANSFORM_H_
#define SLUICE_COMMON_ENCODING_TRANSFORM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/encoding/encoding.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

// What a transform may want to know of a chunk beside its values.
struct ChunkContext {
  // For what is drawn at random: the same for the same job, push and chunk, and for no other.
  uint64_t seed = 0;
  // Of the matrix whose whole rows the chunk is; 0 if it is none.
  uint64_t columns = 0;
  // What the transform keeps of this chunk from push to push; empty at first.
  std::vector<float>* memory = nullptr;
};

// Has no state: any number of threads may use it.
class Transform {
 public:
  virtual ~Transform() = default;

  // Bytes of one value, if the encoded bytes are always MostBytes() many, in values of one width, 2
  // or 4; else 1. What a byte layout of planes goes by.
  virtual size_t width() const { return 1; }

  // Whether each value has width() bytes of its own: any part of the bytes is then decoded by
  // itself.
  virtual bool by_value() const { return false; }

  // Makes bytes of `values`, at least one and all of them finite, and appends them to `bytes`,
  // which is empty. `how` has the values' count, transform, byte layout and compressor, and takes
  // what else the decoder must know; also another transform, if that was applied for it is better
  // here.
  virtual void Encode(absl::Span<const float> values, const Encoding& encoding,
                      const ChunkContext& context, ChunkEncoding* how,
                      std::string* bytes) const = 0;

  // As Encode(), of values that need not be finite: false if one of them is not, or what is made of
  // them would not be; then `how` and `bytes` are to be thrown away. A transform that overrides
  // this spares a pass over the values.
  virtual bool EncodeIfFinite(absl::Span<const float> values, const Encoding& encoding,
                              const ChunkContext& context, ChunkEncoding* how,
                              std::string* bytes) const;

  // The most bytes that `how` can stand for; they are allocated before they are read. BAD_CHUNK if
  // a field that this transform reads is out of its domain. To be called before Decode().
  virtual absl::StatusOr<uint64_t> MostBytes(const ChunkEncoding& how) const = 0;

  // Writes every element of `values`, how.count of them. BAD_CHUNK if `bytes` are not what `how`
  // says, whatever they are: they come from anywhere. Values need not be finite.
  virtual absl::Status Decode(absl::string_view bytes, const ChunkEncoding& how,
                              absl::Span<float> values) const = 0;
};

// Makes a transform of the user's own known by `name`, for good: to be called before main() goes on
// to Sluice, on every side. The name has 1 to 64 lower-case letters, digits, '-' and '_', and is no
// other transform's; dies if not, or if its width is none. Decoders say of themselves in their
// errors what they know.
void RegisterTransform(absl::string_view name, std::unique_ptr<const Transform> transform);

// BAD_ARGUMENT if it is none of Sluice's, or a user's own that was not registered, naming those
// that are.
absl::StatusOr<const Transform*> FindTransform(ValueTransform transform, absl::string_view custom);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_TRANSFORM_H_
