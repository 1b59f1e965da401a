// Encodings to and from protobuf.

#ifndef SLUICE_COMMON_WIRE_ENCODING_H_
#define SLUICE_COMMON_WIRE_ENCODING_H_

#include "absl/status/statusor.h"
#include "common/encoding/encoding.h"
#include "common/encoding/transform_registry.h"
#include "common/protocol/encoding_report.h"
#include "common/tensor/chunk_encoding.h"
#include "sluice/v1/tensor.pb.h"

namespace sluice {

v1::Encoding ToProto(const Encoding& encoding);
// Returns BAD_ARGUMENT if a field has a value that is not allowed, or if `transforms` does not have
// the transform.
absl::StatusOr<Encoding> FromProto(const v1::Encoding& message,
                                   const TransformRegistry& transforms);

v1::ChosenEncoding ToProto(const ChosenEncoding& chosen);
v1::EncodingReport ToProto(const EncodingReport& report);
// BAD_ARGUMENT if a name is too long, or a number is negative or not finite.
absl::StatusOr<EncodingReport> FromProto(const v1::EncodingReport& message);

v1::ChunkEncoding ToProto(const ChunkEncoding& encoding);
// BAD_CHUNK if it has too many elements, or none, or a step that is unknown here. What a step reads
// is left to DecodeValues().
absl::StatusOr<ChunkEncoding> FromProto(const v1::ChunkEncoding& message);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_ENCODING_H_
