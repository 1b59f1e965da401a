#include "tests/soak/process_size.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace sluice {

// See proc(5).
absl::StatusOr<ProcessSize> SizeOf(pid_t pid) {
  const std::string directory = absl::StrCat("/proc/", pid);
  ProcessSize size;
  std::ifstream file(directory + "/status");
  for (std::string word; file >> word;) {
    if (word == "VmRSS:") file >> size.rss_mb;
    if (word == "Threads:") file >> size.threads;
  }
  size.rss_mb *= 1024 / 1e6;
  std::error_code error;
  const std::filesystem::directory_iterator descriptors(directory + "/fd", error);
  if (error || size.threads == 0) {
    return absl::NotFoundError(absl::StrCat("cannot look at process ", pid, ": it has ended, or ",
                                            "belongs to another user"));
  }
  size.file_descriptors = static_cast<double>(std::distance(begin(descriptors), end(descriptors)));
  return size;
}

}  // namespace sluice
