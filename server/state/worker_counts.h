// How many workers of a job are there.

#ifndef SLUICE_SERVER_STATE_WORKER_COUNTS_H_
#define SLUICE_SERVER_STATE_WORKER_COUNTS_H_

#include <cstdint>

namespace sluice {

// Of the workers that joined in this incarnation.
struct WorkerCounts {
  uint32_t connected = 0;  // they take part, and their connection stands
  uint32_t open = 0;       // connected, or lost with a running lease
  uint32_t evicted = 0;    // but not by the operator, and not back by their names
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_WORKER_COUNTS_H_
