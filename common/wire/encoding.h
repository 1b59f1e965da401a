// Encodings to and from protobuf.

#ifndef SLUICE_COMMON_WIRE_ENCODING_H_
#define SLUICE_COMMON_WIRE_ENCODING_H_

#include "absl/status/statusor.h"
#include "common/encoding/encoding.h"
#include "common/protocol/encoding_report.h"
#include "common/tensor/chunk_encoding.h"
#include "sluice/v1/tensor.pb.h"

namespace sluice {

v1::Encoding ToProto(const Encoding& encoding);
// BAD_ARGUMENT if a field is out of its domain, or the transform is unknown here.
absl::StatusOr<Encoding> FromProto(const v1::Encoding& message);

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
