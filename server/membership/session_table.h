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
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/membership/census.h"
#include "server/state/session_record.h"

namespace sluice {

using SessionRecords = std::map<std::string, SessionRecord>;  // by name

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

  // Change a record of this table, and each of them. `change` must not ask the table.
  void Change(const SessionRecord& record, absl::FunctionRef<void(SessionRecord&)> change);
  void ChangeAll(absl::FunctionRef<void(SessionRecord&)> change);

  // From now on that step is the current one.
  void BeginStep(Step step) { census_.BeginStep(step); }

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

  // Whether every push of that process that counted is still recorded.
  bool Remembers(const JoinRequest& request) const;

  // Loads the workers of a checkpoint, before the first Open(), or those of a journaled step: adds
  // their answers to those of the same process. All take part in `step`, and those whose session
  // was open get a lease to join again. `forgot_workers`: see below, of an earlier incarnation.
  void Restore(const std::vector<SessionRecord>& workers, bool forgot_workers, Step step,
               absl::Time now);
  // The launch with that number of workers, not 0, is over. Returns the pushes of each, by index.
  // Removes the records of those that left.
  std::vector<uint64_t> EndLaunch(uint32_t workers);
  // Whether this incarnation or an earlier one has removed the record of a worker that may return.
  bool forgot_workers() const { return forgot_workers_; }

  // Renews the session's lease: notes that it was seen, if its connection stands. UNKNOWN_SESSION
  // if it is not open.
  absl::Status NoteSeen(SessionId session, absl::Time now);
  // Notes that the session, if it is open, waited for this server from `begin` to `end`.
  void NoteServed(SessionId session, absl::Time begin, absl::Time end);

  const SessionRecords& records() const { return records_; }
  const Census& census() const { return census_; }

 private:
  const SessionRecord* FindOpen(SessionId session) const;  // null if it ended or was replaced
  void EndSession(const SessionRecord& record);
  static SessionRecord& Edit(const SessionRecord& record);
  SessionRecords::iterator Forget(SessionRecords::const_iterator gone);

  const uint32_t max_sessions_;
  const uint32_t launched_;
  bool restored_ = false;
  bool forgot_workers_ = false;
  SessionId last_session_;
  SessionRecords records_;
  absl::flat_hash_map<SessionId, const SessionRecord*> by_session_;
  Census census_;
  std::vector<SessionId> changed_;
  uint64_t ended_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_MEMBERSHIP_SESSION_TABLE_H_
