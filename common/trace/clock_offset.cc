#include "common/trace/clock_offset.h"

#include <algorithm>

namespace sluice {

void ClockOffset::Note(absl::Time sent, absl::Time answered, absl::Time received) {
  if (received < sent) return;  // this clock was set back meanwhile
  const absl::Duration delay = received - sent;
  latest_.push_back({delay, answered - (sent + delay / 2)});
  if (latest_.size() > kRoundTrips) latest_.pop_front();
  const auto fastest =
      std::min_element(latest_.begin(), latest_.end(),
                       [](const RoundTrip& a, const RoundTrip& b) { return a.delay < b.delay; });
  const bool may_be_equal = absl::AbsDuration(fastest->offset) <= fastest->delay / 2;
  offset_ = may_be_equal ? absl::ZeroDuration() : fastest->offset;
}

}  // namespace sluice
