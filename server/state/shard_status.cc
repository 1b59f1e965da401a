#include "server/state/shard_status.h"

#include <algorithm>

namespace sluice {

absl::Duration ShardStatus::MeanStepTime() const {
  if (times.steps == 0) return absl::ZeroDuration();
  if (times.steps == 1) return *times.last_step - *times.initialized;
  return (*times.last_step - *times.first_step) / static_cast<double>(times.steps - 1);
}

std::vector<TableStatus> ShardStatus::table_totals() const {
  std::vector<TableStatus> totals(layout == nullptr ? 0 : layout->tables().size());
  for (const ServerStatus& server : each_server) {
    const std::vector<TableStatus>& tables = server.figures.tables;
    for (size_t i = 0; i < std::min(tables.size(), totals.size()); ++i) {
      totals[i] = totals[i] + tables[i];
    }
  }
  return totals;
}

}  // namespace sluice
