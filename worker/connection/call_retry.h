// What a client does about a call that failed, by its error alone.

#ifndef SLUICE_WORKER_CONNECTION_CALL_RETRY_H_
#define SLUICE_WORKER_CONNECTION_CALL_RETRY_H_

#include "absl/status/status.h"

namespace sluice {

// In a row, before a server is given up that lets nobody stay.
inline constexpr int kMaxRejoins = 20;

// Of a pull that changed on its way.
inline constexpr int kMaxRepeats = 3;

// The session, or the connection, is gone: joining again may help.
bool IsLost(const absl::Status& status);

// What was sent changed on its way: the call may be repeated.
bool IsCorrupt(const absl::Status& status);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_CALL_RETRY_H_
