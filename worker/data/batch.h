// Batches of samples as numbers, for models.

#ifndef SLUICE_WORKER_DATA_BATCH_H_
#define SLUICE_WORKER_DATA_BATCH_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/data/dataset.h"

namespace sluice {

struct Batch {
  SampleForm form;
  std::vector<float> inputs;    // size() * form.elements(): sample, channel, row, column
  std::vector<int64_t> labels;  // one for each sample, unless there are targets
  std::vector<float> targets;   // one for each sample, where a number is to be learnt
  std::vector<int64_t> ids;     // of the rows of tables (worker/data/tables)

  int64_t size() const { return static_cast<int64_t>(std::max(labels.size(), targets.size())); }
};

// How images are changed at random, so that a model sees more of them, as He et al. 2015 ("Deep
// Residual Learning for Image Recognition") train on CIFAR-10: with a padding of 4, and mirrored.
struct Augmentation {
  // Black pixels that are added on each side. Then a part of the original size is cropped.
  int64_t padding = 0;
  // Whether half of the images are mirrored, left for right. Do not use it for digits.
  bool mirror = false;
  uint64_t seed = 0;

  bool changes_images() const { return padding > 0 || mirror; }
};

// OK, or INVALID_ARGUMENT if the samples are not images, or the padding is not below their sides.
absl::Status CheckFits(const Augmentation& augmentation, const Dataset& data);

// Makes a batch of the samples `rows` of `data`, in this order, as they are. Each row is in
// [0, data.size()). Images are normalized.
Batch MakeBatch(const Dataset& data, absl::Span<const int64_t> rows);

// The same with images that are changed. What happens to an image follows from the seed, the epoch
// and its row alone: so it does not matter how many workers share the data, and in which threads
// batches are made. `augmentation` fits `data`.
Batch MakeAugmentedBatch(const Dataset& data, absl::Span<const int64_t> rows,
                         const Augmentation& augmentation, int64_t epoch);

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_BATCH_H_
