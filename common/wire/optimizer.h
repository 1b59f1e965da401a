// Translates a job's optimizer to and from its message.
//
// A field of a message has the name of its option in the table of optimizers
// (common/protocol/optimizer_table.h), and is found by that name. Called when a worker joins, when
// a server's state is saved or read, and by the Inspector; any thread may call it.

#ifndef SLUICE_COMMON_WIRE_OPTIMIZER_H_
#define SLUICE_COMMON_WIRE_OPTIMIZER_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "common/protocol/optimizer_config.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "sluice/v1/training.pb.h"

namespace sluice {

v1::OptimizerConfig ToProto(const OptimizerConfig& config);

// The message may come from anyone. Returns a valid config, or BAD_OPTIMIZER saying what is wrong.
// Does not check that the groups fit the model: CheckFits() does.
absl::StatusOr<OptimizerConfig> FromProto(const v1::OptimizerConfig& message);

using GroupOptionsMessages = google::protobuf::RepeatedPtrField<v1::GroupOptions>;

inline constexpr size_t kMostChangedGroups = 65536;

// Adds `changed` to `messages`; null adds nothing.
void PutChanged(const SharedOptions& changed, GroupOptionsMessages* messages);
// Null if there are none. BAD_OPTIMIZER if a group is there twice or has an unknown optimizer, or
// if there are more than kMostChangedGroups; CheckChanged() checks the rest.
absl::StatusOr<SharedOptions> ReadChanged(const GroupOptionsMessages& messages);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_OPTIMIZER_H_
