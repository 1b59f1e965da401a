// Decides by a failed call's error, and by what the server said before, whether a client joins
// again or repeats the call.

#ifndef SLUICE_WORKER_CONNECTION_CALL_RETRY_H_
#define SLUICE_WORKER_CONNECTION_CALL_RETRY_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/protocol_types.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// A client gives up after this many attempts in a row to join again.
inline constexpr int kMaxRejoins = 20;

// How long a client waits after so many attempts to join, before it joins again. A server that is
// reached may accept nobody yet, because other servers of its job have not come. All pauses
// together are more than a minute.
absl::Duration PauseBeforeRejoin(int attempts);

// A client gives up a pull after this many corrupt answers.
inline constexpr int kMaxRepeats = 3;

// The session or the connection is gone: joining again may help.
bool IsLost(const absl::Status& status);

// A payload was damaged on its way: the call may be repeated.
bool IsCorrupt(const absl::Status& status);

// What the server told before the session's stream broke.
struct LastWords {
  absl::optional<JobEvent> end;  // why no step will follow: kDraining, or else kTrainingFinished
  bool evicted = false;          // the server has ended the session, but the job goes on
};

// After a call that IsLost(): takes the events that the server sent before the stream broke.
LastWords LastWordsOf(ServerConnection& connection);
// Returns LastWordsOf(connection).end.
absl::optional<JobEvent> EndToldBy(ServerConnection& connection);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_CALL_RETRY_H_
