#include "server/shard/step_stopwatch.h"

#include <utility>

namespace sluice {

// The time since the part began. The next part begins.
absl::Duration StepStopwatch::Lap() {
  const absl::Time before = std::exchange(began_, clock_.Now());
  return began_ - before;
}

void StepStopwatch::OnAccumulated() {
  if (listener_ != nullptr) accumulated_ += Lap();
}

void StepStopwatch::OnApplied(absl::Duration waited) {
  if (listener_ == nullptr) return;
  if (!published_.has_value()) published_ = began_ - waited;
  listener_(ServerSpan::kWait, waited);
  listener_(ServerSpan::kAccumulate, std::exchange(accumulated_, absl::ZeroDuration()));
  listener_(ServerSpan::kApply, Lap());
}

void StepStopwatch::OnPublished() {
  if (listener_ == nullptr) return;
  listener_(ServerSpan::kPublish, Lap());
  listener_(ServerSpan::kStep, began_ - *published_);
  published_ = began_;
}

}  // namespace sluice
