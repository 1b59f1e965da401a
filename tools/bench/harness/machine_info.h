// What lies around a measurement: the machine's state, and the environment that participants
// inherit.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_MACHINE_INFO_H_
#define SLUICE_TOOLS_BENCH_HARNESS_MACHINE_INFO_H_

#include <cstdint>
#include <string>

namespace sluice::bench {

// Before any participant is started, by a process with one thread: lets a participant that has died
// be an error and not this process's end, keeps logs to warnings, gives libraries `threads` threads
// each for arithmetic, keeps Python from littering, and lets mpirun start as root.
void PrepareEnvironment(uint32_t threads);

// The kernel's TCP congestion control, "cubic"; "unknown" if it does not tell.
std::string CongestionControl();

// Of the last minute.
double LoadAverage();

// Memory that could be had without swapping; 0 if the kernel does not tell.
uint64_t AvailableMemoryBytes();

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_MACHINE_INFO_H_
