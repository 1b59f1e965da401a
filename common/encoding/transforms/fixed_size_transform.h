// A base class for transforms where the number of values alone decides the number of bytes.

#ifndef SLUICE_COMMON_ENCODING_TRANSFORMS_FIXED_SIZE_TRANSFORM_H_
#define SLUICE_COMMON_ENCODING_TRANSFORMS_FIXED_SIZE_TRANSFORM_H_

#include <cstdint>
#include <string>

#include "common/encoding/transform.h"

namespace sluice {

// Subclasses need three methods. Decode() checks the number of bytes before it calls DecodeFrom().
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
  // Returns the number of bytes for `count` values.
  virtual uint64_t SizeOf(uint64_t count) const = 0;
  // Writes SizeOf(values.size()) bytes. Returns whether all values, and all numbers made of them,
  // are finite. If not, only float32 must still write correct bytes.
  virtual bool EncodeTo(absl::Span<const float> values, const Encoding& encoding,
                        const ChunkContext& context, char* bytes) const = 0;
  // Decodes SizeOf(values.size()) bytes.
  virtual absl::Status DecodeFrom(const char* bytes, absl::Span<float> values) const = 0;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_TRANSFORMS_FIXED_SIZE_TRANSFORM_H_
