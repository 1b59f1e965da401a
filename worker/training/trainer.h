// The training loop: it gives a Learner this worker's batches, epoch by epoch.

#ifndef SLUICE_WORKER_TRAINING_TRAINER_H_
#define SLUICE_WORKER_TRAINING_TRAINER_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "worker/data/batch.h"
#include "worker/data/dataset.h"
#include "worker/data/training_samples.h"
#include "worker/training/learner.h"

namespace sluice {

struct TrainerOptions {
  int batch_size = 32;        // of one worker
  int epochs = 1;             // passes of all workers together over the data
  int64_t max_steps = 0;      // ends after this many batches; 0: no limit
  Step until_step;            // ends once the parameters are of this step; 0: no limit
  uint64_t seed = 1;          // decides the order and the augmentation; the same on every worker
  Augmentation augmentation;  // of images; its seed is `seed`
  int data_threads = 1;       // that make batches ahead of the steps
};

inline constexpr int kMostDataThreads = 64;

// OK if one worker can train on `data` with these options; otherwise INVALID_ARGUMENT. Call it
// before the worker joins, so that others do not wait for one that cannot train.
absl::Status Validate(const TrainerOptions& options, const Dataset& data);
// The same for samples of another kind, of which an epoch has so many. They take no augmentation.
absl::Status Validate(const TrainerOptions& options, int64_t samples);

struct TrainedBatch {
  int epoch = 0;  // counts from 0
  int64_t samples = 0;
  absl::optional<int64_t>
      left;  // batches until the end; absent if TrainerOptions::until_step is it
  LearnReport report;
};

// Called after each batch.
using BatchListener = std::function<void(const TrainedBatch& batch)>;

// Trains `learner` on its part of `samples`, without the batches that earlier processes in its
// place have done. `listener`, unless it is null, is told of every batch. Does not call
// Learner::Finish(). Returns the first error of Learner::Learn(); INVALID_ARGUMENT if an option is
// not valid, or the data do not suffice for all workers; RESOURCE_EXHAUSTED if memory does not.
absl::Status Train(const TrainerOptions& options, const TrainingSamples& samples, Learner& learner,
                   const BatchListener& listener);
// The same with the samples of `data`, augmented.
absl::Status Train(const TrainerOptions& options, const Dataset& data, Learner& learner,
                   const BatchListener& listener);

}  // namespace sluice

#endif  // SLUICE_WORKER_TRAINING_TRAINER_H_
