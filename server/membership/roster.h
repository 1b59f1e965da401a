// Who trains what: the job's model and optimizer, its workers, and when training starts and is
// over.

#ifndef SLUICE_SERVER_MEMBERSHIP_ROSTER_H_
#define SLUICE_SERVER_MEMBERSHIP_ROSTER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/protocol_types.h"
#include "server/membership/session_table.h"
#include "server/policy/staleness_policy.h"
#include "server/state/completions.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/shard_status.h"

namespace sluice {

// Externally synchronized. Events go to the listeners of present sessions, and to `owner`, through
// the Completions of the call that caused them.
class Roster {
 public:
  Roster(const ShardOptions& options, JobListener owner);

  // Opens a session active from `active_from`. The first worker's layout and optimizer become the
  // job's; whoever differs from them, or from the job, is refused.
  absl::StatusOr<SessionRecord*> Join(const JoinRequest& request, JobListener listener,
                                      Step active_from, absl::Time now, Completions* completions);

  // Goes on where an earlier life of the server ended; before anybody joins.
  void Restore(const ShardCheckpoint& checkpoint, absl::Time now);
  // That life made a step: those who were there go on, and need not wait for the others again.
  void GoOn();

  // The session speaks. UNKNOWN_SESSION if it is not alive.
  absl::StatusOr<SessionRecord*> Hear(SessionId session, absl::Time now);

  // The session's connection broke; its lease begins to run. Unknown sessions are ignored.
  void Lose(SessionId session, absl::Time now);

  // The session ends in good order.
  absl::Status Leave(SessionId session);

  // The session ends at the server's will; its worker may join again.
  void Evict(SessionRecord& record, Completions* completions);

  // As above by name, and its process may not. NOT_FOUND if nobody alive has that name.
  absl::Status Ban(const std::string& worker, Completions* completions);

  // Draws the consequences of time and membership: ends leases, starts training. To be called after
  // every change and every now and then.
  void Update(absl::Time now, Completions* completions);

  // Announces the end of training, once, when every worker has gone; `step` is final.
  void CheckFinished(Step step, Completions* completions);

  void Announce(const JobEvent& event, Completions* completions) const;

  // What the policy must know of `step`'s workers.
  StepProgress Progress(Step step) const;

  // The lowest rank that may yet contribute to `step`; before all have joined, lower than any.
  absl::optional<Rank> FirstMissing(Step step) const;

  // Fills in the model, the optimizer and the numbers of workers and observers.
  void Describe(ShardStatus* state) const;

  // Whether the workers that the first step waits for have joined, or have been waited for long
  // enough.
  bool started() const { return started_; }
  // Whether every worker has gone since.
  bool finished() const { return finished_; }
  // Null before the first worker joined.
  const std::shared_ptr<const Layout>& layout() const { return layout_; }
  const OptimizerConfig& optimizer() const { return optimizer_; }
  SessionTable& sessions() { return sessions_; }
  const SessionTable& sessions() const { return sessions_; }

 private:
  absl::Status Adopt(const JoinRequest& request);
  absl::Status CheckFitsServer(const JoinRequest& request) const;

  const ShardOptions options_;
  const JobListener owner_;
  SessionTable sessions_;
  std::shared_ptr<const Layout> layout_;
  OptimizerConfig optimizer_;
  absl::optional<absl::Time> first_join_;
  absl::optional<absl::Time> updated_;  // when Update() was called last
  bool started_ = false;
  bool finished_ = false;
  bool deserted_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_MEMBERSHIP_ROSTER_H_
