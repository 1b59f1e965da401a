// How much memory this process has.

#ifndef SLUICE_COMMON_BASE_PROCESS_MEMORY_H_
#define SLUICE_COMMON_BASE_PROCESS_MEMORY_H_

#include <cstdint>

namespace sluice {

// In bytes. 0 where the kernel does not tell.
struct ProcessMemory {
  uint64_t resident = 0;  // in memory, also what other processes share
  uint64_t shared = 0;    // of it: files and shared memory
};

// Any thread may call it.
ProcessMemory ReadProcessMemory();

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_PROCESS_MEMORY_H_
