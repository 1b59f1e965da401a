// The memory that this process may use: the machine's memory, or less if a limit is lower. A
// container or a batch job may have a limit in its control group (cgroup), a shell in ulimit -v and
// ulimit -d.

#ifndef SLUICE_SERVER_PROGRAM_MEMORY_BYTES_H_
#define SLUICE_SERVER_PROGRAM_MEMORY_BYTES_H_

#include <cstdint>
#include <string>

namespace sluice {

// Returns the least of these, in bytes:
// - the machine's memory
// - the limits of this process's control group and of its parents, in cgroup v2 (memory.max) or v1
//   (memory.limit_in_bytes)
// - each limit of ulimit, less what the process uses of it already, and less the stacks of the
//   threads that a server starts
// A file that is missing or has no number sets no limit. Tests pass the `root` under which the
// files lie.
uint64_t MemoryBytes(const std::string& root = "");

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_MEMORY_BYTES_H_
