// How far another node's clock is ahead of this one's, from round trips to it.
//
// As in NTP (RFC 5905): the other side's time, told in its answer, lies between a question's
// sending and the answer's arrival. The middle is the best guess, the round trip's half its largest
// error; of the latest round trips the fastest is believed. Where that one allows that the clocks
// are equal, they are: processes of one node read the same clock, and a guess would only part them.

#ifndef SLUICE_COMMON_TRACE_CLOCK_OFFSET_H_
#define SLUICE_COMMON_TRACE_CLOCK_OFFSET_H_

#include <cstddef>
#include <deque>

#include "absl/time/time.h"

namespace sluice {

// Externally synchronized.
class ClockOffset {
 public:
  // Round trips that are kept: clocks drift, so that a fast one does not count for ever.
  static constexpr size_t kKept = 8;

  // A question was sent and its answer received by this clock, and answered by the other.
  void Note(absl::Time sent, absl::Time answered, absl::Time received);

  // To be added to this clock's time; 0 before the first round trip.
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
