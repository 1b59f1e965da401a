// The translator's optimizers, to and from their messages.

#ifndef SLUICE_COMMON_WIRE_OPTIMIZER_H_
#define SLUICE_COMMON_WIRE_OPTIMIZER_H_

#include "absl/status/statusor.h"
#include "common/protocol/optimizer_config.h"
#include "sluice/v1/training.pb.h"

namespace sluice {

v1::OptimizerConfig ToProto(const OptimizerConfig& config);

// Of a message that may come from anyone: BAD_OPTIMIZER says what is wrong with it. Whether the
// groups fit the model is another question.
absl::StatusOr<OptimizerConfig> FromProto(const v1::OptimizerConfig& message);

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_OPTIMIZER_H_
