// What a running process has cost, as the kernel tells it. See proc(5).

#ifndef SLUICE_TOOLS_BENCH_CROWDS_PROCESS_COST_H_
#define SLUICE_TOOLS_BENCH_CROWDS_PROCESS_COST_H_

#include <sys/types.h>

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"

namespace sluice::bench {

struct ProcessCost {
  double cpu_seconds = 0;       // user and system, since the process started, of all threads
  uint64_t resident_bytes = 0;  // now
  uint64_t peak_bytes = 0;      // the most that were ever resident
};

// NOT_FOUND if there is no such process.
absl::StatusOr<ProcessCost> CostOf(pid_t pid);

// How often each thread has begun to wait, and so was or will be woken: its voluntary context
// switches.
using Wakeups = std::map<pid_t, uint64_t>;

// Those of the threads that run now. Empty if there is no such process.
Wakeups WakeupsOf(pid_t pid);

// How often a process was woken between two calls of WakeupsOf(). A thread that ended in between
// does not count.
uint64_t WakeupsBetween(const Wakeups& before, const Wakeups& after);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CROWDS_PROCESS_COST_H_
