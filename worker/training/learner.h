// What the training loop needs from a model: one batch at a time, and a measure of success.
//
// Two implementations, made in worker/torch/: one that trains with a parameter server, and one that
// trains by itself, the baseline.

#ifndef SLUICE_WORKER_TRAINING_LEARNER_H_
#define SLUICE_WORKER_TRAINING_LEARNER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/protocol/protocol_types.h"
#include "worker/data/dataset.h"

namespace sluice {

// What one batch did.
struct LearnReport {
  float loss = 0;  // mean over the batch, before the step
  Step step;       // whose parameters the model has now
  uint64_t staleness = 0;
  absl::Duration exchange;  // of the batch's time: spent with the server, not computing
};

// A worker's place among those that share the data.
struct Place {
  uint32_t index = 0;
  uint32_t workers = 1;
  int64_t batches_done = 0;  // by earlier processes in its place
};

// To be used by one thread.
class Learner {
 public:
  virtual ~Learner() = default;

  virtual Place place() const = 0;

  // Forward, backward and one optimizer step on those rows of `data`. `next` are those of the next
  // call, which may be prepared while nothing else can be done; empty if there are none.
  virtual absl::StatusOr<LearnReport> Learn(const Dataset& data, absl::Span<const int64_t> rows,
                                            absl::Span<const int64_t> next) = 0;

  // Ends this worker's part in training; Learn() may not follow. With `stay`, waits until the
  // others have ended theirs too and takes the final parameters; only then may Accuracy() and
  // Report() follow.
  virtual absl::Status Finish(bool stay) = 0;

  // The share of `data` that the model labels rightly, in evaluation mode.
  virtual absl::StatusOr<double> Accuracy(const Dataset& data) = 0;

  // Tells the server what came out, for its closing table, and ends the stay.
  virtual absl::Status Report(const Results& results) = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TRAINING_LEARNER_H_
