#include "common/encoding/encoding_chooser.h"

#include <algorithm>
#include <initializer_list>

namespace sluice {
namespace {

absl::Duration Overlapped(std::initializer_list<absl::Duration> stages, uint64_t chunks) {
  absl::Duration sum;
  for (absl::Duration stage : stages) sum += stage;
  const absl::Duration slowest = std::max(stages);
  return slowest + (sum - slowest) / static_cast<double>(std::max<uint64_t>(chunks, 1));
}

}  // namespace

absl::Duration TimeOnItsWay(const EncodingCost& cost, double link, uint64_t chunks,
                            Pipeline pipeline) {
  const absl::Duration sent = absl::Seconds(static_cast<double>(cost.bytes) / link);
  if (pipeline == Pipeline::kThroughout) {
    return Overlapped({cost.encode, sent, cost.decode}, chunks);
  }
  return cost.encode + Overlapped({sent, cost.decode}, chunks);
}

void EncodingChooser::NoteTransfer(uint64_t bytes, absl::Duration time) {
  bytes_ += bytes;
  time_ += time;
}

size_t EncodingChooser::Choose(absl::Span<const EncodingCost> candidates) {
  if (bytes_ > 0 && time_ > absl::ZeroDuration()) {
    link_ = static_cast<double>(bytes_) / absl::ToDoubleSeconds(time_);
    bytes_ = 0;
    time_ = absl::ZeroDuration();
  }
  if (link_ == 0) return chosen_;
  const auto time_of = [&](size_t candidate) {
    return TimeOnItsWay(candidates[candidate], link_, chunks_, pipeline_);
  };
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i) {
    if (time_of(i) < time_of(best)) best = i;
  }
  if (time_of(best) < time_of(chosen_) * (1 - kWorthAChange)) chosen_ = best;
  return chosen_;
}

}  // namespace sluice
