// How the learning rate depends on the server's step.

#ifndef SLUICE_COMMON_PROTOCOL_LEARNING_RATE_SCHEDULE_H_
#define SLUICE_COMMON_PROTOCOL_LEARNING_RATE_SCHEDULE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"

namespace sluice {

enum class ScheduleKind { kConstant, kStep, kCosine };

// A factor that multiplies the optimizer's learning rate. It first rises linearly over
// `warmup_steps`; the first step has 1 / warmup_steps of the rate. Then it follows `kind`, where s
// is the number of steps since the warm-up:
//   constant  1
//   step      gamma ^ floor(s / step_size)                        (torch::optim::StepLR)
//   cosine    floor + (1 − floor) · (1 + cos(π · min(s / T, 1))) / 2, with
//             T = total_steps − warmup_steps (Loshchilov & Hutter 2017, without restarts)
struct LearningRateSchedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  uint64_t warmup_steps = 0;
  uint64_t step_size = 0;    // step: at least 1
  double gamma = 0.1;        // step: above 0
  uint64_t total_steps = 0;  // cosine: more than warmup_steps
  double floor = 0;          // cosine: the last factor, 0 to 1

  // BAD_ARGUMENT names the field that has a wrong value.
  absl::Status Validate() const;

  // The factor when step `step` + 1 is made from step `step`.
  double FactorAt(Step step) const;

  bool is_constant() const { return kind == ScheduleKind::kConstant && warmup_steps == 0; }
};

// "constant", "step", "cosine". For an unknown name, BAD_ARGUMENT lists the known ones.
absl::string_view ScheduleKindName(ScheduleKind kind);
absl::Status ParseScheduleKind(absl::string_view name, ScheduleKind* kind);

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_LEARNING_RATE_SCHEDULE_H_
