// The state of the machine, and the environment that participants inherit.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_MACHINE_INFO_H_
#define SLUICE_TOOLS_BENCH_HARNESS_MACHINE_INFO_H_

#include <cstdint>
#include <string>

namespace sluice::bench {

// Call this before any participant starts, while the process has one thread. It ignores SIGPIPE, so
// that the death of a participant is an error and does not end this process. It limits logs to
// warnings, gives each library `threads` threads for arithmetic, keeps Python from writing .pyc
// files, and lets mpirun start as root.
void PrepareEnvironment(uint32_t threads);

// Returns the kernel's TCP congestion control, for example "cubic", or "unknown".
std::string CongestionControl();

// Returns the load average of the last minute.
double LoadAverage();

// Returns the memory that is available without swapping, or 0 if the kernel does not report it.
uint64_t AvailableMemoryBytes();

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_MACHINE_INFO_H_
