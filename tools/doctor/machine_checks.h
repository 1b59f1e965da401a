// Checks of this machine: programs, MPI, memory, descriptors, sockets, cores, clock.

#ifndef SLUICE_TOOLS_DOCTOR_MACHINE_CHECKS_H_
#define SLUICE_TOOLS_DOCTOR_MACHINE_CHECKS_H_

#include <cstdint>

#include "tools/doctor/finding.h"

namespace sluice {

// The job that the machine is to run.
struct PlannedJob {
  double model_mb = 0;   // MB of parameters; 0: unknown
  uint32_t workers = 0;  // 0: unknown
};

// Tries everything for real, and leaves nothing behind. Runs mpirun --version, and the programs
// beside this one.
Findings CheckMachine(const PlannedJob& job);

}  // namespace sluice

#endif  // SLUICE_TOOLS_DOCTOR_MACHINE_CHECKS_H_
