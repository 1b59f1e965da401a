// Prints the progress of training for people. On a terminal it renews one line; elsewhere it prints
// a line every few seconds.

#ifndef SLUICE_WORKER_TRAINING_PROGRESS_H_
#define SLUICE_WORKER_TRAINING_PROGRESS_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "worker/training/trainer.h"

namespace sluice {

// The speed of training, from the end of the first batch to the end of the last. The first batch is
// left out because it waits for the other workers to join.
struct Pace {
  double samples_per_second = 0;  // of this worker
  double exchange_share = 0;      // the share of the time that was spent with the server
};

// Used by one thread.
class Progress {
 public:
  // Writes to `out`; `terminal` says whether that is a terminal. `out` and `clock` outlive this.
  // `unit` names the samples.
  Progress(std::ostream& out, bool terminal, const Clock& clock, std::string unit = "images");

  // Notes a batch. Writes a line if the last one is old enough.
  void Note(const TrainedBatch& batch);

  // Writes the last line, if any batch was noted.
  void Finish();

  // The pace of the batches so far; absent unless time has passed since the first one.
  absl::optional<Pace> pace() const;

 private:
  void NotePace(absl::Time now, const TrainedBatch& batch);
  void Write(absl::Time now);
  std::string TimeLeft() const;

  std::ostream& out_;
  const bool terminal_;
  const Clock& clock_;
  const std::string unit_;
  bool line_open_ = false;  // on a terminal: the line may be renewed
  absl::Time written_;      // time of the last line; the next fields count from then on
  int64_t samples_ = 0;
  int64_t batches_ = 0;
  double loss_sum_ = 0;
  uint64_t max_staleness_ = 0;
  int epoch_ = 0;
  Step step_;
  int64_t left_ = 0;                  // batches; 0 if unknown
  absl::optional<absl::Time> first_;  // end of the first batch; the pace counts from then on
  absl::Time last_;
  int64_t pace_batches_ = 0;
  int64_t pace_samples_ = 0;
  absl::Duration pace_exchange_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TRAINING_PROGRESS_H_
