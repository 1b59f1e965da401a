// The signals that end a server: SIGINT, SIGTERM, and SIGHUP unless the process ignores it, as
// under nohup. A server's main thread waits for them.

#ifndef SLUICE_SERVER_STOP_SIGNALS_H_
#define SLUICE_SERVER_STOP_SIGNALS_H_

#include "absl/time/time.h"

namespace sluice {

// How often a server's main thread looks around, and so how late leases may end.
inline constexpr absl::Duration kServerTick = absl::Milliseconds(100);

// Blocks them in the calling thread, which must be the only one that can receive them. Also blocks
// SIGPIPE: a server goes on when nobody reads its log any more.
void BlockStopSignals();

// Waits for one tick, in that thread. Returns the signal that came, or 0.
int WaitForStopSignal();

}  // namespace sluice

#endif  // SLUICE_SERVER_STOP_SIGNALS_H_
