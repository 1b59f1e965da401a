// The training loop: epochs of batches, this worker's part of each.

#ifndef SLUICE_WORKER_TRAINING_TRAINER_H_
#define SLUICE_WORKER_TRAINING_TRAINER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/data/dataset.h"
#include "worker/training/learner.h"
#include "worker/training/progress.h"

namespace sluice {

struct TrainerOptions {
  int batch_size = 32;    // of one worker
  int epochs = 1;         // passes of all workers together over the data
  int64_t max_steps = 0;  // end after that many batches; 0: no limit
  Step until_step;        // end once the parameters are of that step; 0: no limit
  uint64_t seed = 1;      // of the order of the data; the same on every worker
};

// Trains `learner` on what is left of its part of `data`; `progress` is told of every batch, unless
// it is null. The learner has then not finished yet.
absl::Status Train(const TrainerOptions& options, const Dataset& data, Learner& learner,
                   Progress* progress);

}  // namespace sluice

#endif  // SLUICE_WORKER_TRAINING_TRAINER_H_
