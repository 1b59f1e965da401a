// A transform whose bytes are as many as the number of values says.

#ifndef SLUICE_COMMON_ENCODING_TRANSFORMS_FIXED_SIZE_TRANSFORM_H_
#define SLUICE_COMMON_ENCODING_TRANSFORMS_FIXED_SIZE_TRANSFORM_H_

#include <cstdint>
#include <string>

#include "common/encoding/transform.h"

namespace sluice {

class FixedSizeTransform : public Transform {
 public:
  void Encode(absl::Span<const float> values, const Encoding& encoding, const ChunkContext& context,
              ChunkEncoding* how, std::string* bytes) const final;
  bool EncodeIfFinite(absl::Span<const float> values, const Encoding& encoding,
                      const ChunkContext& context, ChunkEncoding* how,
                      std::string* bytes) const final;
  absl::StatusOr<uint64_t> MostBytes(const ChunkEncoding& how) const final;
  absl::Status Decode(absl::string_view bytes, const ChunkEncoding& how,
                      absl::Span<float> values) const final;

 protected:
  // Bytes of so many values.
  virtual uint64_t SizeOf(uint64_t count) const = 0;
  // Writes SizeOf(values.size()) bytes. Returns whether all values are finite, and what was made of
  // them; float32 takes those that are not, too.
  virtual bool EncodeTo(absl::Span<const float> values, const Encoding& encoding,
                        const ChunkContext& context, char* bytes) const = 0;
  // Reads as many.
  virtual absl::Status DecodeFrom(const char* bytes, absl::Span<float> values) const = 0;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_TRANSFORMS_FIXED_SIZE_TRANSFORM_H_
