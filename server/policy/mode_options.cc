#include "server/policy/mode_options.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

constexpr uint32_t kWorkersForABackup = 20;

}  // namespace

uint32_t DefaultQuorum(ConsistencyMode mode, uint32_t workers) {
  if (mode != ConsistencyMode::kBackup || workers < 2) return 1;
  return workers - std::max(workers / kWorkersForABackup, 1u);
}

uint32_t DefaultMaxStaleness(uint32_t workers, uint32_t quorum) {
  const uint64_t steps = (std::max<uint64_t>(workers, 1) + quorum - 1) / quorum;
  return static_cast<uint32_t>(std::min<uint64_t>(2 * steps, std::numeric_limits<uint32_t>::max()));
}

uint32_t PushesPerStep(const Consistency& consistency, uint32_t workers) {
  switch (consistency.mode) {
    case ConsistencyMode::kSync:
    case ConsistencyMode::kBackup:
      return workers;
    case ConsistencyMode::kBounded:
    case ConsistencyMode::kAsync:
      return std::max(consistency.quorum, uint32_t{1});
    case ConsistencyMode::kSsp:
      break;
  }
  return 1;
}

std::string DescribeMode(const Consistency& consistency) {
  std::string words(ConsistencyModeName(consistency.mode));
  if (consistency.HasQuorum()) absl::StrAppend(&words, ", quorum ", consistency.quorum);
  if (consistency.max_staleness.has_value()) {
    absl::StrAppend(&words, ", max_staleness ", *consistency.max_staleness);
  }
  if (consistency.mode == ConsistencyMode::kSsp) {
    absl::StrAppend(&words, ", slack ", consistency.slack);
  }
  return words;
}

}  // namespace sluice
