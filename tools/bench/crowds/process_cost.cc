#include "tools/bench/crowds/process_cost.h"

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sluice::bench {
namespace {

// The number after a word of a "status" file; 0 if it is not there.
uint64_t StatusNumber(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  uint64_t number = 0;
  for (std::string word; file >> word;) {
    if (word == name && file >> number) return number;
  }
  return 0;
}

// Returns a negative number if there is no such process.
double CpuSecondsOf(const std::string& directory) {
  constexpr size_t kUserTime = 11;  // its place after the name, which may have blanks
  std::ifstream file(directory + "/stat");
  std::string line;
  if (!std::getline(file, line)) return -1;
  const std::string after_name = line.substr(line.rfind(')') + 1);
  const std::vector<std::string> fields = absl::StrSplit(after_name, ' ', absl::SkipEmpty());
  uint64_t user = 0, system = 0;
  if (fields.size() <= kUserTime + 1 || !absl::SimpleAtoi(fields[kUserTime], &user) ||
      !absl::SimpleAtoi(fields[kUserTime + 1], &system)) {
    return -1;
  }
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

absl::StatusOr<ProcessCost> CostOf(pid_t pid) {
  const std::string directory = absl::StrCat("/proc/", pid);
  ProcessCost cost;
  cost.cpu_seconds = CpuSecondsOf(directory);
  cost.resident_bytes = 1024 * StatusNumber(directory + "/status", "VmRSS:");
  cost.peak_bytes = 1024 * StatusNumber(directory + "/status", "VmHWM:");
  if (cost.cpu_seconds >= 0 && cost.resident_bytes > 0) return cost;
  return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
}

Wakeups WakeupsOf(pid_t pid) {
  Wakeups wakeups;
  std::error_code error;
  const std::filesystem::directory_iterator threads(absl::StrCat("/proc/", pid, "/task"), error);
  for (const auto& thread : threads) {
    pid_t id = 0;
    if (!absl::SimpleAtoi(thread.path().filename().string(), &id)) continue;
    wakeups[id] = StatusNumber(thread.path() / "status", "voluntary_ctxt_switches:");
  }
  return wakeups;
}

uint64_t WakeupsBetween(const Wakeups& before, const Wakeups& after) {
  uint64_t sum = 0;
  for (const auto& [thread, count] : after) {
    const auto earlier = before.find(thread);
    sum += count - (earlier == before.end() ? 0 : earlier->second);
  }
  return sum;
}

}  // namespace sluice::bench
