// All that the live page and the logs of events show of a job, at one moment.

#ifndef SLUICE_SERVER_EVENTS_JOB_MOMENT_H_
#define SLUICE_SERVER_EVENTS_JOB_MOMENT_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/state/session_record.h"
#include "server/state/shard_status.h"

namespace sluice {

struct JobMoment {
  absl::Time time;  // of day, by RealClock(): the shard's own clock stands still in pauses
  ShardStatus state;
  std::vector<SessionRecord> sessions;  // the shard's, in any order
  Results results;                      // that workers reported when they left
  absl::optional<Step> checkpoint;      // the last one of this process; absent: there is none
  bool going_down = false;              // the server ends its calls, saves, and exits
  // That wait or run on the threads of this server, by their name; see Executors.
  std::map<std::string, size_t> executor_tasks;
  std::set<SessionId> pulling;  // sessions to which this server sends parameters
};

}  // namespace sluice

#endif  // SLUICE_SERVER_EVENTS_JOB_MOMENT_H_
