#include "tools/bench/crowds/crowd_worker.h"

#include <chrono>
#include <utility>

namespace sluice::bench {

absl::Status CrowdWorker::Work(StopFlag& stop) {
  while (!stop.WaitFor(compute_)) {
    const absl::Status done = TimeRound();
    if (!done.ok()) return done;
  }
  return Leave();
}

absl::Status CrowdWorker::TimeRound() {
  const auto start = std::chrono::steady_clock::now();
  const auto disposition = DoRound();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (!disposition.ok()) return disposition.status();
  Note(*disposition, took.count());
  return absl::OkStatus();
}

void CrowdWorker::Note(Disposition disposition, double seconds) {
  const bool counts = disposition == Disposition::kAccepted || disposition == Disposition::kApplied;
  const absl::MutexLock lock(&mu_);
  seconds_.push_back(static_cast<float>(seconds));
  if (counts) {
    ++answers_.accepted;
  } else if (disposition == Disposition::kStaleDropped) {
    ++answers_.stale;
  } else {
    ++answers_.others;
  }
}

std::vector<float> CrowdWorker::Take() {
  const absl::MutexLock lock(&mu_);
  return std::exchange(seconds_, {});
}

PushAnswers CrowdWorker::answers() const {
  const absl::MutexLock lock(&mu_);
  return answers_;
}

}  // namespace sluice::bench
