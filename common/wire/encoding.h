// Translates encodings, and reports about them, to protobuf and back.
//
// A message may come from anyone, so FromProto() checks its fields. ToProto() cannot fail.

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
// Returns BAD_ARGUMENT if a name is too long, or a number is negative or not finite.
absl::StatusOr<EncodingReport> FromProto(const v1::EncodingReport& message);

v1::ChunkEncoding ToProto(const ChunkEncoding& encoding);
// Returns BAD_CHUNK if the chunk has no elements or too many, or if a step of the encoding is
// unknown. DecodeValues() checks the fields that the steps read.
absl::StatusOr<ChunkEncoding> FromProto(const v1::ChunkEncoding& message);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_ENCODING_H_
