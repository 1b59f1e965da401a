// Decides by a failed call's error whether a client joins again or repeats the call.

#ifndef SLUICE_WORKER_CONNECTION_CALL_RETRY_H_
#define SLUICE_WORKER_CONNECTION_CALL_RETRY_H_

#include "absl/status/status.h"

namespace sluice {

// A client gives up after this many attempts in a row to join again.
inline constexpr int kMaxRejoins = 20;

// A client gives up a pull after this many corrupt answers.
inline constexpr int kMaxRepeats = 3;

// The session or the connection is gone: joining again may help.
bool IsLost(const absl::Status& status);

// A payload was damaged on its way: the call may be repeated.
bool IsCorrupt(const absl::Status& status);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_CALL_RETRY_H_
