// The table of sessions: one record for each worker or observer name, and its current session.
//
// Each Join opens a session. If a name joins again, the new session replaces the old one:
// 1. The same process (same nonce) continues with its sequence and its stored answers. If its old
//    session is still open, it also keeps its index and its place in the current step.
// 2. Another process of that name starts with a new sequence. If the old session is still open, it
//    takes over its index, unless it asks for another, and with the index its place in the current
//    step, if the old one has not contributed to it. The answers of the old one are discarded.

#ifndef SLUICE_SERVER_MEMBERSHIP_SESSION_TABLE_H_
#define SLUICE_SERVER_MEMBERSHIP_SESSION_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/membership/census.h"
#include "server/state/session_record.h"
#include "server/state/worker_counts.h"

namespace sluice {

// The facts that decide whether an observer may join under a name.
struct ObserverPlaces {
  bool is_workers = false;              // a worker has, or had, that name
  absl::optional<ProcessNonce> holder;  // of the open session of an observer with that name
  uint32_t others = 0;                  // open sessions of observers with other names
};

// Externally synchronized; the roster owns it. Pointers to records are valid until the next Open().
// Records change only through this class, which counts them.
class SessionTable {
 public:
  // The first session gets the number after `base`. The data is divided among `launched` workers.
  explicit SessionTable(uint32_t max_sessions, SessionId base = SessionId(), uint32_t launched = 1)
      : max_sessions_(max_sessions), launched_(launched), last_session_(base) {}

  // Opens a session. A worker that does not keep its place, as in 1., takes part from step
  // `active_from`. If `catches_up`, its ssp clock is at least that of the slowest worker, so that
  // nobody waits for it to catch up. EVICTED if the operator evicted that process. BAD_ARGUMENT if
  // it does not keep its place and asks for an index that another open worker has, or that is not
  // below the limit of sessions. TOO_MANY_WORKERS if the table is full and no record can be
  // removed.
  absl::StatusOr<const SessionRecord*> Open(const JoinRequest& request, Step active_from,
                                            absl::Time now, bool catches_up = true);

  // Changes a record of this table. `change` must not ask the table.
  void Change(const SessionRecord& record, absl::FunctionRef<void(SessionRecord&)> change);

  // From now on that step is the current one.
  void BeginStep(Step step);

  // The sessions whose records have changed since the last call. One may be named twice.
  std::vector<SessionId> TakeChanged() { return std::exchange(changed_, {}); }
  // How many sessions have ended.
  uint64_t ended() const { return ended_; }

  // The record of an open session. UNKNOWN_SESSION if it ended or was replaced.
  absl::StatusOr<const SessionRecord*> Find(SessionId session) const;
  bool IsAlive(SessionId session) const { return FindOpen(session) != nullptr; }

  // The same, with NOT_A_WORKER for an observer's session.
  absl::StatusOr<const SessionRecord*> FindWorker(SessionId session) const;

  // The record with that name, or null if it has no open session.
  const SessionRecord* FindAlive(const std::string& worker) const;

  // Whether there is a record of that process.
  bool Knows(const JoinRequest& request) const;
  // Whether every push of that process that counted is still recorded.
  bool Remembers(const JoinRequest& request) const;

  // Whether the process that joins takes the place of a worker of its name in the current step:
  // that worker takes part in the step and has not contributed to it, and the process does not ask
  // for another index (ranks change at the next step).
  bool TakesOver(const JoinRequest& request) const;

  // Loads the workers of a checkpoint. Before the first Open(). All take part in `step`, and those
  // whose session was open get a lease to join again.
  void Restore(const std::vector<SessionRecord>& workers, bool forgot_workers, Step step,
               absl::Time now);
  // The launch with that number of workers, not 0, is over. Returns the pushes of each, by index.
  // Removes the records of those that left.
  std::vector<uint64_t> EndLaunch(uint32_t workers);
  // Loads one worker of a journaled step. Adds its answers to those of the same process.
  void RestoreWorker(const SessionRecord& worker, Step step, absl::Time now);
  // Whether this incarnation or an earlier one has removed the record of a worker that may return.
  bool forgot_workers() const { return forgot_workers_; }
  void ForgetWorkers() { forgot_workers_ = true; }

  // The open sessions that were last seen at `deadline` or before.
  std::vector<SessionId> SilentSince(absl::Time deadline) const;
  // Renews the session's lease: notes that it was seen, if its connection stands. UNKNOWN_SESSION
  // if it is not open.
  absl::Status NoteSeen(SessionId session, absl::Time now);
  // Notes that the session, if it is open, waited for this server from `begin` to `end`.
  void NoteServed(SessionId session, absl::Time begin, absl::Time end);

  // The members of the current step that others wait for: those that have not contributed or, with
  // `slowest` (ssp), those with that clock.
  std::vector<SessionId> Holders(absl::optional<uint64_t> slowest) const;

  // Whether a process of that name has contributed to the current step.
  bool HasContributed(const std::string& worker) const;

  // The first `limit` names of workers that have contributed to it.
  std::vector<std::string> Contributors(size_t limit) const;

  // Whether a worker has left in good order.
  bool AnyWorkerLeft() const;
  // How many workers have joined in this incarnation and left in good order, and nobody came in
  // their place, by their indexes.
  uint32_t CountDone() const;
  // Whether workers have joined in this incarnation, all have gone, and none was seen after
  // `deadline`.
  bool AllAreGoneSince(absl::Time deadline) const;
  // Whether an observer of that name has joined in this incarnation.
  bool HasObserved(const std::string& observer) const;
  // The names of the open sessions of observers.
  std::vector<std::string> Observers() const;
  // Whether one of that role MayContinue().
  bool AnyMayContinue(SessionRole role, absl::Time now) const;
  const Census& census() const { return census_; }
  // Ends the excuse of a worker that pushes again. Its clock continues at that of the slowest.
  void Readmit(const SessionRecord& record);
  // Sets all clocks to 0.
  void ResetClocks();

  // All records, in order of name.
  std::vector<SessionRecord> Records() const;
  // The first `most` records of workers whose names are greater than `name`, in order of name.
  std::vector<SessionRecord> WorkersAfter(const std::string& name, size_t most) const;
  ObserverPlaces PlacesFor(const std::string& observer) const;
  // Calls LeaveOut() of each record for the current step.
  void LeaveOut();
  // The records of names that have contributed to the current step, reduced by OnlyOf(), in order
  // of name. Where another process has taken the name since, the record says so: the earlier one
  // must not repeat its push to a server that is started again.
  std::vector<SessionRecord> Parts() const;

  // The listeners of all present sessions.
  std::vector<JobListener> Listeners() const;

 private:
  SessionRecord SucceedTo(const SessionRecord& earlier);
  const SessionRecord* FindOpen(SessionId session) const;  // null if it ended or was replaced
  void EndSession(const SessionRecord& record);
  static SessionRecord& Edit(const SessionRecord& record);
  uint64_t SlowestOfOthers(const SessionRecord& record);
  absl::Status ForgetOneRecord(Step step);
  std::map<std::string, SessionRecord>::iterator FindForgettable(Step step);
  std::map<std::string, SessionRecord>::iterator Forget(
      std::map<std::string, SessionRecord>::iterator gone);
  absl::Status CheckIndex(const JoinRequest& request) const;

  const uint32_t max_sessions_;
  const uint32_t launched_;
  bool restored_ = false;
  bool forgot_workers_ = false;
  SessionId last_session_;
  std::map<std::string, SessionRecord> records_;
  absl::flat_hash_map<SessionId, const SessionRecord*> by_session_;
  Step step_;  // the current one
  Census census_;
  std::vector<SessionId> changed_;
  uint64_t ended_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_MEMBERSHIP_SESSION_TABLE_H_
