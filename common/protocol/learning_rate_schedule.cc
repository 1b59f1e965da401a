#include "common/protocol/learning_rate_schedule.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/base/nearest.h"

namespace sluice {
namespace {

constexpr absl::string_view kKinds[] = {"constant", "step", "cosine"};

absl::Status BadSchedule(absl::string_view what) {
  return MakeError(Reason::kBadArgument, absl::StrCat("the learning rate's schedule has ", what));
}

}  // namespace

absl::Status LearningRateSchedule::Validate() const {
  if (kind == ScheduleKind::kStep && step_size == 0) {
    return BadSchedule("step_size 0, expected the steps between two changes, at least 1");
  }
  if (kind == ScheduleKind::kStep && !(std::isfinite(gamma) && gamma > 0)) {
    return BadSchedule(absl::StrCat("gamma ", gamma, ", expected a finite number above 0"));
  }
  if (kind == ScheduleKind::kCosine && total_steps <= warmup_steps) {
    return BadSchedule(absl::StrCat("total_steps ", total_steps, ", expected more than the ",
                                    warmup_steps, " of the warm-up"));
  }
  if (kind == ScheduleKind::kCosine && !(floor >= 0 && floor <= 1)) {
    return BadSchedule(absl::StrCat("floor ", floor, ", expected 0 to 1"));
  }
  return absl::OkStatus();
}

double LearningRateSchedule::FactorAt(Step step) const {
  if (step.value() < warmup_steps) {
    return static_cast<double>(step.value() + 1) / static_cast<double>(warmup_steps);
  }
  const uint64_t since = step.value() - warmup_steps;
  switch (kind) {
    case ScheduleKind::kStep:
      return std::pow(gamma, static_cast<double>(since / step_size));
    case ScheduleKind::kCosine: {
      const double share =
          static_cast<double>(since) / static_cast<double>(total_steps - warmup_steps);
      return floor + (1 - floor) * (1 + std::cos(M_PI * std::min(share, 1.0))) / 2;
    }
    case ScheduleKind::kConstant:
      break;
  }
  return 1;
}

absl::string_view ScheduleKindName(ScheduleKind kind) { return kKinds[static_cast<int>(kind)]; }

absl::Status ParseScheduleKind(absl::string_view name, ScheduleKind* kind) {
  for (const ScheduleKind known :
       {ScheduleKind::kConstant, ScheduleKind::kStep, ScheduleKind::kCosine}) {
    if (name != ScheduleKindName(known)) continue;
    *kind = known;
    return absl::OkStatus();
  }
  return MakeError(
      Reason::kBadArgument,
      absl::StrCat("schedule \"", Shown(name), "\" is unknown; expected constant, step or cosine",
                   DidYouMean(name, {"constant", "step", "cosine"})));
}

}  // namespace sluice
