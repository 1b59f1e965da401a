// Questions about all sessions of a job. Each answer reads the records one after the other.

#ifndef SLUICE_SERVER_MEMBERSHIP_SESSION_QUERIES_H_
#define SLUICE_SERVER_MEMBERSHIP_SESSION_QUERIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/membership/census.h"
#include "server/membership/session_table.h"
#include "server/state/session_record.h"
#include "server/state/shard_status.h"

namespace sluice {

// The open sessions that were last seen at `deadline` or before.
std::vector<SessionId> SilentSince(const SessionRecords& records, absl::Time deadline);

// Puts the workers that have stalled into `state`; see SessionRecord::HasStalled().
void FindStalled(const SessionRecords& records, absl::Time now, StepState* state);

GoneWorkers CountGone(const SessionRecords& records);

// The members of `step` that others wait for: those that have not contributed or, with `slowest`
// (ssp), those with that clock.
std::vector<SessionId> HoldersOf(Step step, const SessionRecords& records,
                                 absl::optional<uint64_t> slowest);

// The first `limit` names of workers that have contributed to `step`.
std::vector<std::string> ContributorsTo(Step step, const SessionRecords& records, size_t limit);

// Whether the process that joins takes the place of a worker of its name in `step`: that worker
// takes part in the step and has not contributed to it, and the process does not ask for another
// index (ranks change at the next step).
bool TakesOver(const JoinRequest& request, const SessionRecords& records, Step step);

// Whether a worker has left in good order.
bool AnyWorkerLeft(const SessionRecords& records);

// The records of names that have contributed to the current step, reduced by OnlyOf(), in order of
// name. Where another process has taken the name since, the record says so: the earlier one must
// not repeat its push to a server that is started again.
std::vector<SessionRecord> PartsOfStep(const Census& census);

// The first `most` records of workers whose names are greater than `name`, in order of name.
std::vector<SessionRecord> WorkersAfter(const std::string& name, const SessionRecords& records,
                                        size_t most);

// The facts that decide whether an observer may join under a name.
struct ObserverPlaces {
  bool is_workers = false;              // a worker has, or had, that name
  absl::optional<ProcessNonce> holder;  // of the open session of an observer with that name
  uint32_t others = 0;                  // open sessions of observers with other names
};
ObserverPlaces PlacesFor(const std::string& observer, const SessionRecords& records);

}  // namespace sluice

#endif  // SLUICE_SERVER_MEMBERSHIP_SESSION_QUERIES_H_
