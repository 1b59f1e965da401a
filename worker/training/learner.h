// The functions of a model that the training loop (trainer.h) needs.
//
// worker/torch/training/learners.h makes two implementations: one trains with a parameter server,
// the other trains alone, as a baseline.

#ifndef SLUICE_WORKER_TRAINING_LEARNER_H_
#define SLUICE_WORKER_TRAINING_LEARNER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/protocol_types.h"
#include "worker/data/batch.h"
#include "worker/data/batch_deal.h"
#include "worker/training/evaluation.h"

namespace sluice {

// The result of one batch.
struct LearnReport {
  float loss = 0;  // mean over the batch, before the step
  Step step;       // of the parameters that the model has now
  uint64_t staleness = 0;
  absl::Duration exchange;  // the part of the batch's time that was spent with the server
};

// A worker's place among the workers that share the data.
struct Place {
  uint32_t index = 0;
  uint32_t workers = 1;
  int64_t batches_done = 0;  // by earlier processes in its place
  // For each earlier launch of the job: the batches of each worker, by index.
  std::vector<BatchDeal::Launch> earlier_launches = {};
};

// Used by one thread.
class Learner {
 public:
  virtual ~Learner() = default;

  virtual Place place() const = 0;

  // Runs forward, backward and one optimizer step on the batch.
  virtual absl::StatusOr<LearnReport> Learn(Batch batch) = 0;

  // Ends this worker's training; Learn() may not follow. With `stay`, waits until the other workers
  // have ended, too, and takes the final parameters; Evaluate() and Report() need that.
  virtual absl::Status Finish(bool stay) = 0;

  // Ends this worker's training because of an error; the job takes the worker for lost.
  virtual void Fail(const absl::Status& why) = 0;

  // Tests the model on the data that the learner was made with for that.
  virtual absl::StatusOr<TestResult> Evaluate() = 0;

  // Reports results for the server's closing table, and leaves.
  virtual absl::Status Report(const Results& results) = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TRAINING_LEARNER_H_
