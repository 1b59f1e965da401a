#include "server/rpc/listening/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace sluice {

OpenFiles OpenFilesLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return {limit.rlim_cur, limit.rlim_max};
}

OpenFiles RaiseOpenFilesLimit() {
  constexpr uint64_t kMost = 1'000'000;
  const OpenFiles found = OpenFilesLimit();
  const uint64_t wanted = std::max(found.now, std::min(found.most, kMost));
  const rlimit limit = {static_cast<rlim_t>(wanted), static_cast<rlim_t>(found.most)};
  setrlimit(RLIMIT_NOFILE, &limit);
  return OpenFilesLimit();
}

}  // namespace sluice
