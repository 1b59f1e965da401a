// Translates layouts, the settings of a job, durations and times to protobuf, and back.
//
// A message may come from anyone, so FromProto() checks every field; its error names the field that
// is wrong. ToProto() cannot fail.

#ifndef SLUICE_COMMON_WIRE_SETTINGS_H_
#define SLUICE_COMMON_WIRE_SETTINGS_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/consistency.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/tensor/layout.h"
#include "sluice/v1/tensor.pb.h"
#include "sluice/v1/training.pb.h"

namespace sluice {

v1::Consistency ToProto(const Consistency& consistency);
absl::StatusOr<Consistency> FromProto(const v1::Consistency& message);  // BAD_ARGUMENT

v1::LearningRateSchedule ToProto(const LearningRateSchedule& schedule);
absl::StatusOr<LearningRateSchedule> FromProto(
    const v1::LearningRateSchedule& message);  // BAD_ARGUMENT

// Durations and times are cut to microseconds, and durations to 10,000 years, which is the longest
// that a message can hold.
google::protobuf::Duration ToProto(absl::Duration duration);
absl::Duration FromProto(const google::protobuf::Duration& message);
google::protobuf::Timestamp ToProto(absl::Time time);
absl::Time FromProto(const google::protobuf::Timestamp& message);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_SETTINGS_H_
