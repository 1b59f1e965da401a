// The memory that this process may use. It is the machine's memory, or less in a container or batch
// job whose control group (cgroup) has a limit, or in a shell with one (ulimit -v, ulimit -d).

#ifndef SLUICE_SERVER_PROGRAM_MEMORY_BYTES_H_
#define SLUICE_SERVER_PROGRAM_MEMORY_BYTES_H_

#include <cstdint>
#include <string>

namespace sluice {

// Returns the machine's memory, or the lowest limit of this process's control group and its parents
// if that is less. Reads cgroup v2 (memory.max) and v1 (memory.limit_in_bytes). Or what is left by
// the limits of address space and data, when the process has its code, its libraries and the stacks
// of a server's threads. A file that is missing or has no number sets no limit. Tests pass the
// `root` under which the files lie.
uint64_t MemoryBytes(const std::string& root = "");

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_MEMORY_BYTES_H_
