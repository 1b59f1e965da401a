// How training gets on, for whoever watches: one line that renews itself on a terminal, a plain
// line every few seconds elsewhere.

#ifndef SLUICE_WORKER_TRAINING_PROGRESS_H_
#define SLUICE_WORKER_TRAINING_PROGRESS_H_

#include <cstdint>
#include <ostream>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "worker/training/learner.h"

namespace sluice {

// How fast training went, from the end of the first batch, which waits for the other workers to
// come, to the end of the last.
struct Pace {
  double images_per_second = 0;  // of this worker
  double exchange_share = 0;     // of the time: spent with the server, not computing
};

// To be used by one thread.
class Progress {
 public:
  // Writes to `out`, in the form for a terminal or not. Both outlive it.
  Progress(std::ostream& out, bool terminal, const Clock& clock);

  // Tells of a batch of `samples`. Writes if the last line is old enough.
  void Note(int epoch, const LearnReport& report, int64_t samples);

  // Writes the last line, if any batch was noted.
  void Finish();

  // Of the batches noted so far; nothing unless time has passed since the first of them.
  absl::optional<Pace> pace() const;

 private:
  void NotePace(absl::Time now, const LearnReport& report, int64_t samples);
  void Write(absl::Time now);

  std::ostream& out_;
  const bool terminal_;
  const Clock& clock_;
  bool line_open_ = false;  // on a terminal: it may yet be renewed
  absl::Time written_;      // when the last line was, and what was noted since
  int64_t samples_ = 0;
  int64_t batches_ = 0;
  double loss_sum_ = 0;
  uint64_t max_staleness_ = 0;
  int epoch_ = 0;
  Step step_;
  absl::optional<absl::Time> first_;  // the end of the first batch; since then, for the pace:
  absl::Time last_;
  int64_t pace_samples_ = 0;
  absl::Duration pace_exchange_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TRAINING_PROGRESS_H_
