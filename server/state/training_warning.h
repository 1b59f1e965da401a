// What the server warns of while a job trains.

#ifndef SLUICE_SERVER_STATE_TRAINING_WARNING_H_
#define SLUICE_SERVER_STATE_TRAINING_WARNING_H_

#include <string>

#include "absl/types/optional.h"
#include "common/base/ids.h"

namespace sluice {

enum class WarningKind {
  kNotFinite,  // the first four: see Divergence
  kParametersGrow,
  kLossRises,
  kDoesNotLearn,
  kWorkersLost,       // half of the workers or more were evicted
  kGradientsDropped,  // most gradients are dropped because they are stale
  kWentBack,          // the server has gone back to a checkpoint, because training diverged
  kWorkersLate,       // training has begun without workers, which came too late
  kTooFewWorkers,     // in backup the quorum is larger than the number of workers
};

struct TrainingWarning {
  WarningKind kind = WarningKind::kNotFinite;
  Step since;                 // the first step that showed it
  absl::optional<Step> over;  // when it was over; absent: it lasts
  std::string text;           // a sentence: what was seen, and what to do
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_TRAINING_WARNING_H_
