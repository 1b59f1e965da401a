// Estimates from round trips how far another node's clock is ahead of this one.
//
// The method is that of NTP (RFC 5905): the time in the answer lies between sending the question
// and receiving the answer. The middle is the estimate, and half the round trip is its largest
// error. The fastest of the latest round trips is used. If it allows an offset of 0, the offset is
// 0: processes of one node read the same clock.

#ifndef SLUICE_COMMON_TRACE_CLOCK_OFFSET_H_
#define SLUICE_COMMON_TRACE_CLOCK_OFFSET_H_

#include <cstddef>
#include <deque>

#include "absl/time/time.h"

namespace sluice {

// Externally synchronized.
class ClockOffset {
 public:
  // Only this many round trips are used: clocks drift, so old ones must be forgotten.
  static constexpr size_t kRoundTrips = 8;

  // Notes a round trip: `sent` and `received` by this clock, `answered` by the other.
  void Note(absl::Time sent, absl::Time answered, absl::Time received);

  // Add this to this clock's time to get the other's. 0 before the first round trip.
  absl::Duration offset() const { return offset_; }

 private:
  struct RoundTrip {
    absl::Duration delay;
    absl::Duration offset;
  };

  std::deque<RoundTrip> latest_;
  absl::Duration offset_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TRACE_CLOCK_OFFSET_H_
