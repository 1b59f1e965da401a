// Who takes part: one record per worker name, and the session that speaks for it now.
//
// A session is one Join. A worker that joins again, under the same name, replaces its earlier
// session; with the same process nonce it goes on with its sequence, with another it starts anew.
// If it does so while its earlier session is alive, it also keeps its place in the step under way,
// and its index. So does another process of that name, unless the earlier one has contributed to
// the step already.

#ifndef SLUICE_SERVER_MEMBERSHIP_SESSION_TABLE_H_
#define SLUICE_SERVER_MEMBERSHIP_SESSION_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/aggregation/contributions.h"
#include "server/state/session_record.h"

namespace sluice {

// Externally synchronized. Records stay where they are until the next Open().
class SessionTable {
 public:
  // The first session has the number after `base`.
  explicit SessionTable(uint32_t max_sessions, SessionId base = SessionId())
      : max_sessions_(max_sessions), last_session_(base) {}

  // Opens a session for `request`, active from `active_from` if it has no place yet. EVICTED if the
  // operator removed that process; TOO_MANY_WORKERS at the limit of sessions.
  // With `catches_up`, a worker that has no place yet goes on beside the slowest; else it has made
  // no push.
  absl::StatusOr<SessionRecord*> Open(const JoinRequest& request, Step active_from, absl::Time now,
                                      bool catches_up = true);

  // The record that `session` speaks for. UNKNOWN_SESSION if it ended or was replaced.
  absl::StatusOr<SessionRecord*> Find(SessionId session);
  absl::StatusOr<const SessionRecord*> Find(SessionId session) const;
  bool IsAlive(SessionId session) const { return Find(session).ok(); }

  // As above, and NOT_A_WORKER for an observer's.
  absl::StatusOr<SessionRecord*> FindWorker(SessionId session);

  // The record of that name; null if there is none, or it is gone.
  SessionRecord* FindAlive(const std::string& worker);

  // Whether the server knows that process.
  bool Knows(const JoinRequest& request) const;
  // Whether it would know of every push of that process that counted.
  bool Remembers(const JoinRequest& request) const {
    return Knows(request) || (restored_ && !forgot_workers_);
  }

  // Whether another process of that name takes part in `step`, and has not contributed to it: the
  // one that asks does so in its place.
  bool TakesOver(const JoinRequest& request, Step step) const;

  // Goes on with the workers of an earlier life, as lost if they took part; before any session. All
  // take part in `step`.
  void Restore(const std::vector<SessionRecord>& workers, bool forgot_workers, Step step,
               absl::Time now);
  // One of them, as it became later: the answers of its process are added to those it has.
  void RestoreLater(const SessionRecord& worker, Step step, absl::Time now);
  // Whether a worker that may come back was forgotten, in this life or an earlier one.
  bool forgot_workers() const { return forgot_workers_; }
  void ForgetWorkers() { forgot_workers_ = true; }

  // The sessions that were last seen at `deadline` or before, silent or lost.
  std::vector<SessionId> SilentSince(absl::Time deadline) const;
  // For so long nobody could be heard: they were last seen that much later, but not after `now`.
  void Excuse(absl::Duration deaf, absl::Time now);

  // The workers that hold `step` up, so far as they take part in it: those missing from it or, with
  // `by_clock`, those whose clock is the slowest.
  std::vector<SessionId> Holders(Step step, bool by_clock) const;

  // Whether a worker of that name has, whichever its process.
  bool HasContributed(const std::string& worker, Step step) const;

  // The first `limit` names of workers that have contributed to `step`.
  std::vector<std::string> Contributors(Step step, size_t limit) const;

  uint32_t CountAlive(SessionRole role) const;
  // Those that have gone too, but for those that went in an earlier life.
  uint32_t CountKnown(SessionRole role) const;
  uint32_t CountMembers(Step step) const;
  // Members of `step` that have not contributed to it.
  uint32_t CountMissing(Step step) const;
  // The lowest of their ranks.
  absl::optional<Rank> FirstMissing(Step step) const;
  // The lowest clock of workers that are alive and not excused; if all are, the highest, so that
  // none of them waits for another. Leaves `except` out. 0 if there is none.
  uint64_t SlowestClock(const SessionRecord* except = nullptr) const;
  // An excused worker pushes again: it goes on beside the slowest.
  void Readmit(SessionRecord& record);
  // Sets all clocks to 0.
  void ResetClocks();

  // In order of name.
  std::vector<SessionRecord> Records() const;
  // Whether each worker that is alive has a push that is part of `step`.
  bool AllArePartOf(Step step) const;
  // Those whose pushes are part of `step`, with OnlyOf(step).
  std::vector<SessionRecord> PartsOf(Step step) const;

  // Of all sessions that are present.
  std::vector<JobListener> Listeners() const;

 private:
  absl::Status MakeRoom(Step step);
  std::map<std::string, SessionRecord>::iterator FindForgettable(Step step);
  uint32_t FreeIndex(const SessionRecord& claimant) const;
  template <typename Predicate>
  uint32_t Count(const Predicate& predicate) const;

  const uint32_t max_sessions_;
  bool restored_ = false;
  bool forgot_workers_ = false;
  SessionId last_session_;
  std::map<std::string, SessionRecord> records_;
  absl::flat_hash_map<SessionId, SessionRecord*> by_session_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_MEMBERSHIP_SESSION_TABLE_H_
