#include "server/program/memory_bytes.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

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

// The stacks of the threads that a server starts. Each takes address space from its start.
uint64_t StackBytes() {
  constexpr uint64_t kThreads = 32;
  size_t stack = 0;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_getstacksize(&attributes, &stack);
  pthread_attr_destroy(&attributes);
  return kThreads * stack;
}

// What the limits of ulimit leave for a model. This process has a part of them already, and its
// threads will take another. A line of /proc/self/limits is "Max data size  1000  2000  bytes".
uint64_t LeftByLimits(const std::string& root) {
  constexpr absl::string_view kAddresses = "Max address space";  // ulimit -v
  constexpr absl::string_view kData = "Max data size";           // ulimit -d
  uint64_t size = 0;  // in pages, as all of /proc/self/statm
  uint64_t data = 0;
  uint64_t other = 0;
  std::ifstream(absl::StrCat(root, "/proc/self/statm")) >> size >> other >> other >> other >>
      other >> data;
  uint64_t left = kNoLimit;
  std::ifstream limits(absl::StrCat(root, "/proc/self/limits"));
  for (std::string line; std::getline(limits, line);) {
    absl::string_view rest = line;
    const bool addresses = absl::ConsumePrefix(&rest, kAddresses);
    if (!addresses && !absl::ConsumePrefix(&rest, kData)) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(rest, ' ', absl::SkipEmpty());
    uint64_t limit = 0;
    if (words.empty() || !absl::SimpleAtoi(words[0], &limit)) continue;  // "unlimited"
    const uint64_t taken =
        (addresses ? size : data) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + StackBytes();
    left = std::min(left, limit - std::min(limit, taken));
  }
  return left;
}

}  // namespace

uint64_t MemoryBytes(const std::string& root) {
  uint64_t bytes = std::min(PhysicalBytes(), LeftByLimits(root));
  std::ifstream groups(absl::StrCat(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    bytes = std::min(bytes, LimitOfLine(root, line));
  }
  return bytes;
}

}  // namespace sluice
