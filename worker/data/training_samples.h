// What the training loop takes its batches from, whatever kind of data it is.

#ifndef SLUICE_WORKER_DATA_TRAINING_SAMPLES_H_
#define SLUICE_WORKER_DATA_TRAINING_SAMPLES_H_

#include <cstdint>
#include <functional>

#include "absl/types/span.h"
#include "worker/data/batch.h"
#include "worker/data/dataset.h"

namespace sluice {

struct TrainingSamples {
  int64_t size = 0;  // of an epoch
  // Makes a batch of these samples, each in [0, size). `step` counts batches over all epochs, and
  // is the same for all workers of a batch. Any thread calls it, and several at once.
  std::function<Batch(absl::Span<const int64_t> rows, int64_t epoch, int64_t step)> make;
};

// `data` outlives them, and `augmentation` fits it.
TrainingSamples SamplesOf(const Dataset& data, const Augmentation& augmentation);

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_TRAINING_SAMPLES_H_
