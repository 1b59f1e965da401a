// Translates running means to protobuf, and back.

#ifndef SLUICE_COMMON_WIRE_RUNNING_MEANS_H_
#define SLUICE_COMMON_WIRE_RUNNING_MEANS_H_

#include "absl/status/statusor.h"
#include "common/tensor/running_means.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "sluice/v1/tensor.pb.h"

namespace sluice {

using RunningMeanMessages = google::protobuf::RepeatedPtrField<v1::RunningMean>;

// Adds `means` to `messages`.
void PutRunningMeans(const RunningMeans& means, RunningMeanMessages* messages);
// BAD_ARGUMENT as CheckRunningMeans() has it.
absl::StatusOr<RunningMeans> ReadRunningMeans(const RunningMeanMessages& messages);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_RUNNING_MEANS_H_
