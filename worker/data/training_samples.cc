#include "worker/data/training_samples.h"

namespace sluice {

TrainingSamples SamplesOf(const Dataset& data, const Augmentation& augmentation) {
  TrainingSamples samples;
  samples.size = data.size();
  samples.make = [&data, augmentation](absl::Span<const int64_t> rows, int64_t epoch, int64_t) {
    return MakeAugmentedBatch(data, rows, augmentation, epoch);
  };
  return samples;
}

}  // namespace sluice
