// All that the live page, the logs of events and the metrics show of a job, at one moment: the
// messages that the Inspector answers with.

#ifndef SLUICE_SERVER_OBSERVE_JOB_MOMENT_H_
#define SLUICE_SERVER_OBSERVE_JOB_MOMENT_H_

#include <vector>

#include "absl/time/time.h"
#include "common/protocol/results.h"
#include "server/durable/directory.h"
#include "server/shard/shard.h"
#include "server/state/shard_status.h"
#include "sluice/v1/inspector.pb.h"

namespace sluice {

struct JobMoment {
  absl::Time time;  // of day, by RealClock(): waits in `state` stand still in pauses
  v1::ServerState state;
  std::vector<v1::Server> servers;     // in the order of their indices
  std::vector<v1::TableState> tables;  // in the order of the layout
  std::vector<v1::Worker> workers;     // in the order of their names
  Results results;                     // that workers reported when they left
  bool going_down = false;             // the server ends its calls, saves, and exits
};

// Any thread may call these functions. `state` is what Shard::Describe() returned; `durable` may be
// null.

// Without the workers and their results: nothing in it grows with their number.
JobMoment MomentOfServers(const ShardStatus& state, Shard& shard, const DurableDirectory* durable);
JobMoment MomentOf(const ShardStatus& state, Shard& shard, const DurableDirectory* durable);

}  // namespace sluice

#endif  // SLUICE_SERVER_OBSERVE_JOB_MOMENT_H_
