// What a server knows of itself when somebody asks for its metrics.

#ifndef SLUICE_SERVER_METRICS_SERVER_FIGURES_H_
#define SLUICE_SERVER_METRICS_SERVER_FIGURES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "server/durable/directory.h"
#include "server/shard/shard.h"
#include "server/state/shard_status.h"

namespace sluice {

// Of one incarnation. A plain value.
struct ServerFigures {
  ShardStatus status;
  std::map<std::string, size_t> executor_tasks;  // that wait or run, by the executor's name
  // Since a checkpoint was saved or, before the first, since the incarnation began. Absent: the
  // server saves none while it trains (no directory, or --checkpoint-every=0).
  absl::optional<absl::Duration> checkpoint_age;
};

// Any thread may call it. `durable` may be null.
ServerFigures FiguresOf(Shard& shard, const DurableDirectory* durable);

// Of this process, as the kernel counts it.
struct ProcessFigures {
  uint64_t resident_bytes = 0;
  absl::Duration cpu;  // in user and system mode, of all threads
};
ProcessFigures FiguresOfThisProcess();

}  // namespace sluice

#endif  // SLUICE_SERVER_METRICS_SERVER_FIGURES_H_
