#include "common/base/process_memory.h"

#include <unistd.h>

#include <fstream>

namespace sluice {

ProcessMemory ReadProcessMemory() {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t size = 0;
  uint64_t resident = 0;
  uint64_t shared = 0;
  std::ifstream("/proc/self/statm") >> size >> resident >> shared;
  return {resident * page, shared * page};
}

}  // namespace sluice
