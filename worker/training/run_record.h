// Appends what a worker sees of its training to a file, one JSON object a line. tools/plot draws
// it.
//
// While it trains, about one line a second with what was new since the last:
//   {"worker":0,"workers":3,"time":1790000000.25,"seconds":1.02,"epoch":1,"step":120,
//    "samples":3840,"loss":0.71,"staleness":0.5,"exchange":0.41}
// `time` is in seconds since 1970, `seconds` since this worker began; loss and staleness are means,
// and `exchange` is the time spent with the server, in seconds. The worker that measures the final
// parameters adds
//   {"worker":0,"time":…,"seconds":…,"step":…,"test_samples":10000,"test_loss":0.31,
//    "test_accuracy":0.89}
// A model that classifies nothing has another metric, or none, in place of the accuracy.
// A number that is not finite is null. Several workers may write to the same file.

#ifndef SLUICE_WORKER_TRAINING_RUN_RECORD_H_
#define SLUICE_WORKER_TRAINING_RUN_RECORD_H_

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/training/evaluation.h"
#include "worker/training/learner.h"

namespace sluice {

// Used by one thread. If the file cannot be written any more, training goes on without a record:
// status() is then UNAVAILABLE.
class RunRecord {
 public:
  // Opens the file, or creates it. UNAVAILABLE if it cannot be written. `clock` outlives this.
  static absl::StatusOr<std::unique_ptr<RunRecord>> Open(const std::string& path,
                                                         const Clock& clock);

  // Training begins, at this place. Call it once, before what follows.
  void Begin(const Place& place);

  // Notes a batch. Writes a line if the last one is a second old.
  void Note(int epoch, const LearnReport& report, int64_t samples);
  // Writes what was not written yet.
  void Finish();
  void AddTest(const TestResult& test);

  absl::Status status() const;

 private:
  RunRecord(const std::string& path, const Clock& clock);

  void Write();

  const std::string path_;
  std::ofstream file_;
  const Clock& clock_;
  Place place_;
  absl::Time began_;
  // These count what was new since the last line.
  absl::Time written_;
  int64_t batches_ = 0;
  int64_t samples_ = 0;
  double loss_sum_ = 0;
  double staleness_sum_ = 0;
  absl::Duration exchange_;
  // The last batch had these.
  int epoch_ = 0;
  Step step_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TRAINING_RUN_RECORD_H_
