#include "server/program/memory_bytes.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sluice {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

uint64_t PhysicalBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

// Without a limit, v2 writes "max" and v1 a number near 2^63.
uint64_t LimitIn(const std::string& file) {
  std::ifstream in(file);
  std::string text;
  uint64_t limit = 0;
  return in >> text && absl::SimpleAtoi(text, &limit) ? limit : kNoLimit;
}

// The lowest limit in `group` and the groups above it. In a container the path of the group may be
// the host's, of which only the top is mounted; then the groups below it are missing.
uint64_t LowestLimit(const std::string& mount, absl::string_view group, absl::string_view file) {
  uint64_t lowest = LimitIn(absl::StrCat(mount, "/", file));
  while (group.size() > 1) {
    lowest = std::min(lowest, LimitIn(absl::StrCat(mount, group, "/", file)));
    group = group.substr(0, group.rfind('/'));
  }
  return lowest;
}

// A line of /proc/self/cgroup is "0::/group" (v2) or "4:cpu,memory:/group" (v1).
uint64_t LimitOfLine(const std::string& root, const std::string& line) {
  const std::string mount = absl::StrCat(root, "/sys/fs/cgroup");
  const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
  if (fields.size() != 3 || !absl::StartsWith(fields[2], "/")) return kNoLimit;
  if (fields[0] == "0" && fields[1].empty()) return LowestLimit(mount, fields[2], "memory.max");
  for (const absl::string_view controller : absl::StrSplit(fields[1], ',')) {
    if (controller != "memory") continue;
    return LowestLimit(absl::StrCat(mount, "/memory"), fields[2], "memory.limit_in_bytes");
  }
  return kNoLimit;
}

}  // namespace

uint64_t MemoryBytes(const std::string& root) {
  uint64_t bytes = PhysicalBytes();
  std::ifstream groups(absl::StrCat(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    bytes = std::min(bytes, LimitOfLine(root, line));
  }
  return bytes;
}

}  // namespace sluice
