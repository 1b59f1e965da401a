// How long a process asks for a name that the server says another one has.
//
// The other process may have died, and this one was started in its place. The server notices a
// broken connection at once, but if the machine has died, only the silence: after half a lease.

#ifndef SLUICE_WORKER_CONNECTION_NAME_WAIT_H_
#define SLUICE_WORKER_CONNECTION_NAME_WAIT_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace sluice {

// Of one Join. Externally synchronized. Times come from one monotonic clock.
class NameWait {
 public:
  // A connection that breaks is noticed within this time, whatever was heard before.
  static constexpr absl::Duration kShort = absl::Seconds(2);

  // Asks for `most` at the longest, but for kShort in any case.
  explicit NameWait(absl::Duration most) : most_(most) {}

  // The pause before the next request, after one that ended with `refused` at `now`. Absent: do not
  // ask again, because that is no NAME_TAKEN, or the server has heard the other process meanwhile,
  // or the time is over.
  absl::optional<absl::Duration> PauseAfter(const absl::Status& refused, absl::Time now);
  // How long the wait may still take, the first time that it is longer than kShort; absent later.
  absl::optional<absl::Duration> TakeNews();

 private:
  const absl::Duration most_;
  absl::optional<absl::Time> begun_;
  absl::optional<absl::Duration> left_;  // as the server said the last time
  absl::optional<absl::Duration> news_;
  bool told_ = false;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_NAME_WAIT_H_
