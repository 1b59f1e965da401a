// Translates the header, the summary and the answer of a push to protobuf, and back.
//
// FromProto() checks every field: its errors are BAD_ARGUMENT and name the field.

#ifndef SLUICE_COMMON_WIRE_PUSH_H_
#define SLUICE_COMMON_WIRE_PUSH_H_

#include "absl/status/statusor.h"
#include "common/protocol/protocol_types.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

v1::PushHeader ToProto(const PushHeader& header);
absl::StatusOr<PushHeader> FromProto(const v1::PushHeader& message);

v1::PushSummary ToProto(const PushSummary& summary);
absl::StatusOr<PushSummary> FromProto(const v1::PushSummary& message);

v1::PushGradientsResponse ToProto(const PushOutcome& outcome);
absl::StatusOr<PushOutcome> FromProto(const v1::PushGradientsResponse& message);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_PUSH_H_
