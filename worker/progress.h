// How training gets on, for whoever watches: one line that renews itself on a terminal, a plain
// line every few seconds elsewhere.

#ifndef SLUICE_WORKER_PROGRESS_H_
#define SLUICE_WORKER_PROGRESS_H_

#include <cstdint>
#include <ostream>

#include "absl/time/time.h"
#include "common/clock.h"
#include "worker/learner.h"

namespace sluice {

// To be used by one thread.
class Progress {
 public:
  // Writes to `out`, in the form for a terminal or not. Both outlive it.
  Progress(std::ostream& out, bool terminal, const Clock& clock);

  // Tells of a batch of `samples`. Writes if the last line is old enough.
  void Note(int epoch, const LearnReport& report, int64_t samples);

  // Writes the last line, if any batch was noted.
  void Finish();

 private:
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
};

}  // namespace sluice

#endif  // SLUICE_WORKER_PROGRESS_H_
