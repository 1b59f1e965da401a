// How the learning rate goes with the steps of the server.

#ifndef SLUICE_COMMON_PROTOCOL_LEARNING_RATE_SCHEDULE_H_
#define SLUICE_COMMON_PROTOCOL_LEARNING_RATE_SCHEDULE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"

namespace sluice {

enum class ScheduleKind { kConstant, kStep, kCosine };

// A factor on the optimizer's learning rate. It first rises in a line over `warmup_steps`, the
// first step having 1 / warmup_steps of the rate, then follows `kind`, with s the steps since:
//   constant  1
//   step      gamma ^ floor(s / step_size)                        (torch::optim::StepLR)
//   cosine    floor + (1 − floor) · (1 + cos(π · min(s / T, 1))) / 2, T = total_steps −
//   warmup_steps
//             (Loshchilov & Hutter 2017, without restarts)
struct LearningRateSchedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  uint64_t warmup_steps = 0;
  uint64_t step_size = 0;    // step: at least 1
  double gamma = 0.1;        // step: above 0
  uint64_t total_steps = 0;  // cosine: more than warmup_steps
  double floor = 0;          // cosine: 0 to 1, where the factor ends

  // OK, or BAD_ARGUMENT saying which field is out of its domain.
  absl::Status Validate() const;

  // The factor for the step that makes version `step` + 1 of the parameters.
  double FactorAt(Step step) const;

  bool is_constant() const { return kind == ScheduleKind::kConstant && warmup_steps == 0; }
};

// "constant", "step", "cosine"; an unknown name gives BAD_ARGUMENT with the list.
absl::string_view ScheduleKindName(ScheduleKind kind);
absl::Status ParseScheduleKind(absl::string_view name, ScheduleKind* kind);

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_LEARNING_RATE_SCHEDULE_H_
