// The counts of the workers and observers in a SessionTable, and who of them the current step waits
// for. They are kept while records change: with a thousand workers, each push asks for them several
// times, and nothing may walk all records then.

#ifndef SLUICE_SERVER_MEMBERSHIP_CENSUS_H_
#define SLUICE_SERVER_MEMBERSHIP_CENSUS_H_

#include <cstdint>
#include <map>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/state/session_record.h"
#include "server/state/worker_counts.h"

namespace sluice {

// Externally synchronized; the table owns it. A record is known by its address.
class Census {
 public:
  // Counts the record, which is new or has changed, as it is now.
  void Count(const SessionRecord& record);
  void Forget(const SessionRecord& record);

  // From now on that step is the current one. The cost is that of the workers that were part of the
  // step before, if it is the next one, else that of all.
  void BeginStep(Step step);
  Step step() const { return step_; }

  // The open sessions.
  uint32_t open(SessionRole role) const { return totals_[Place(role)].open; }
  // The names that have an open session, or that joined in this incarnation and have gone.
  uint32_t known(SessionRole role) const { return totals_[Place(role)].known; }
  const WorkerCounts& workers() const { return workers_; }

  // The workers that take part in the current step, and those of them that have not contributed.
  uint32_t members() const { return members_; }
  uint32_t missing() const { return static_cast<uint32_t>(missing_.size()); }
  absl::optional<Rank> first_missing() const;  // the lowest rank of these
  // Whether the latest push of each open worker is part of the current step, or it takes part from
  // a later step on. With a journal these pushes are answered after the step, so no further
  // contribution comes before it.
  bool all_wait() const { return waiting_ == open(SessionRole::kWorker); }
  // The names that have contributed to the current step, also those that have gone or that another
  // process has taken; and those whose latest push is part of it.
  const absl::flat_hash_set<const SessionRecord*>& of_step() const { return of_step_; }

  // The lowest clock of the open workers that are not excused. If all are excused, the highest
  // clock, so that none waits for another. 0 if there is no worker.
  uint64_t slowest_clock() const;

 private:
  // How a record is counted.
  struct Tally {
    SessionRole role = SessionRole::kObserver;
    bool open = false;
    bool known = false;
    bool of_step = false;
    // An observer has none of these.
    bool connected = false;
    bool joined = false;
    bool evicted = false;
    bool member = false;
    bool missing = false;
    bool waits = false;
    bool excused = false;
    uint64_t clock = 0;
    absl::optional<Step> active_from;      // if it takes part from a later step
    std::set<Rank>::const_iterator place;  // among the missing
  };
  struct Totals {
    uint32_t open = 0;
    uint32_t known = 0;
  };
  using Clocks = std::map<uint64_t, uint32_t>;  // how many workers have that clock

  static size_t Place(SessionRole role) { return role == SessionRole::kWorker ? 0 : 1; }
  Tally TallyOf(const SessionRecord& record) const;
  void Add(const SessionRecord& record, Tally& tally);
  void Remove(const SessionRecord& record, const Tally& tally);
  void AddToTotals(const Tally& tally, uint32_t one);

  Step step_;
  absl::flat_hash_map<const SessionRecord*, Tally> tallies_;
  Totals totals_[2];
  WorkerCounts workers_;
  uint32_t members_ = 0;
  uint32_t waiting_ = 0;
  std::set<Rank> missing_;
  absl::flat_hash_set<const SessionRecord*> of_step_;
  std::multimap<Step, const SessionRecord*> joining_;  // by the step that they take part from
  Clocks clocks_;
  Clocks excused_clocks_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_MEMBERSHIP_CENSUS_H_
