// Measures the parts of each step for ShardOptions::on_span.

#ifndef SLUICE_SERVER_SHARD_STEP_STOPWATCH_H_
#define SLUICE_SERVER_SHARD_STEP_STOPWATCH_H_

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "server/state/server_span.h"

namespace sluice {

// Externally synchronized: the thread that StepLoop::Advance() runs on uses it, without the shard's
// mutex. Reads no clock if nobody listens.
class StepStopwatch {
 public:
  // `listener`, which may be null, and `clock` outlive it.
  StepStopwatch(const SpanListener& listener, const Clock& clock)
      : listener_(listener), clock_(clock) {}

  // A part begins: a gradient is added, or the step is applied.
  void Begin() {
    if (listener_ != nullptr) began_ = clock_.Now();
  }
  // The gradient is in the sum.
  void OnAccumulated();
  // The next parameters are written. `waited`: see NextAction.
  void OnApplied(absl::Duration waited);
  // The step is published, and its answers are given.
  void OnPublished();

 private:
  absl::Duration Lap();

  const SpanListener& listener_;
  const Clock& clock_;
  absl::Time began_;
  absl::Duration accumulated_;            // of the current step
  absl::optional<absl::Time> published_;  // the latest step; at first, the first step's begin
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_STEP_STOPWATCH_H_
