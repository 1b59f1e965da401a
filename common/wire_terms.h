// The translator's vocabulary: layouts, optimizers and consistency rules to and from their
// messages.
//
// Messages may come from anyone: FromProto checks every field and names the one that is wrong.
// ToProto cannot fail.

#ifndef SLUICE_COMMON_WIRE_TERMS_H_
#define SLUICE_COMMON_WIRE_TERMS_H_

#include "absl/status/statusor.h"
#include "common/consistency.h"
#include "common/layout.h"
#include "common/sgd_options.h"
#include "sluice/v1/tensor.pb.h"
#include "sluice/v1/training.pb.h"

namespace sluice {

v1::LayoutRange ToProto(const LayoutRange& range);
absl::StatusOr<Layout> FromProto(const v1::Layout& message);  // BAD_LAYOUT

v1::OptimizerConfig ToProto(const SgdOptions& options);
absl::StatusOr<SgdOptions> FromProto(const v1::OptimizerConfig& message);  // BAD_OPTIMIZER

v1::Consistency ToProto(const Consistency& consistency);
absl::StatusOr<Consistency> FromProto(const v1::Consistency& message);  // BAD_ARGUMENT

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_TERMS_H_
