#include "common/wire/running_means.h"

#include <cstddef>

namespace sluice {

void PutRunningMeans(const RunningMeans& means, RunningMeanMessages* messages) {
  for (const RunningMean& mean : means) {
    v1::RunningMean& message = *messages->Add();
    message.set_offset(mean.begin);
    message.set_count(mean.end - mean.begin);
    message.set_decay(mean.decay);
  }
}

absl::StatusOr<RunningMeans> ReadRunningMeans(const RunningMeanMessages& messages) {
  RunningMeans means;
  means.reserve(static_cast<size_t>(messages.size()));
  for (const v1::RunningMean& message : messages) {
    means.push_back(RunningMeanOf(message.offset(), message.count(), message.decay()));
  }
  const absl::Status sound = CheckRunningMeans(means);
  if (!sound.ok()) return sound;
  return means;
}

}  // namespace sluice
