// The members of the job: its workers and observers, the model and optimizer that they share, when
// training starts, and when it is finished.
//
// Roster sits above SessionTable: the table stores the records, and the roster applies the rules of
// time (leases, start timeout) and sends events.

#ifndef SLUICE_SERVER_MEMBERSHIP_ROSTER_H_
#define SLUICE_SERVER_MEMBERSHIP_ROSTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/protocol_types.h"
#include "server/membership/session_table.h"
#include "server/policy/staleness_policy.h"
#include "server/state/completions.h"
#include "server/state/shard_checkpoint.h"
#include "server/state/shard_options.h"

namespace sluice {

// What the first worker brings, and the others must have, too.
struct JobModel {
  std::shared_ptr<const Layout> layout;  // null before the first worker joined
  // Not null. ShardStatus shares it.
  std::shared_ptr<const OptimizerConfig> optimizer = std::make_shared<const OptimizerConfig>();
  absl::optional<std::string> pull_encoding;  // of workers that step themselves
};

// The launches of workers that a job has had.
struct Launches {
  // The data is divided among so many workers. After BeginLaunch(): the workers of this launch.
  uint32_t workers = 0;
  // For each launch that is over: the pushes of each worker, by index. They do not count any more
  // for a worker's place in the data. A launch without pushes is left out.
  std::vector<std::vector<uint64_t>> earlier;
};

// Externally synchronized; JobParts owns it. Events go to the listeners of present sessions
// and to `owner`, through the Completions of the call that caused them.
class Roster {
 public:
  // How long a server that continues a finished training waits for the observers that were there
  // when it was finished.
  static constexpr absl::Duration kObserversReturn = absl::Minutes(10);

  Roster(const ShardOptions& options, JobListener owner);

  // Opens a session that takes part from step `active_from`. The layout and optimizer of the first
  // worker become the job's; before that, an observer gets NOT_INITIALIZED. NAME_TAKEN if another
  // process has the name and still runs. WRONG_JOB, LAYOUT_MISMATCH or OPTIMIZER_MISMATCH if a
  // request does not match the job. MODEL_TOO_LARGE or BAD_OPTIMIZER if the server cannot run the
  // model. Other errors are SessionTable::Open()'s.
  absl::StatusOr<const SessionRecord*> Join(const JoinRequest& request, JobListener listener,
                                            Step active_from, absl::Time now,
                                            Completions* completions);

  // Loads the members of a checkpoint. Call it before the first Join().
  //
  // If the checkpoint is of a later step than 0, it calls ResumeTraining(). At step 0 it does so
  // only in an incarnation that goes on (ShardOptions::goes_on), and only if all expected workers
  // had joined when the checkpoint was saved. If they had not, such an incarnation waits for them
  // again, but at most one lease.
  //
  // A checkpoint may say that training was finished. Its launch is then over, and the pushes of its
  // workers move into Launches::earlier. Training is finished here, too, until a worker joins, in
  // an incarnation of that launch, and in one that was started by hand if the checkpoint names
  // observers. kDeserted is sent when those observers have come and gone, or after
  // kObserversReturn.
  void Restore(const ShardCheckpoint& checkpoint, absl::Time now);
  // Training continues where an earlier incarnation was. If open workers were restored, training
  // counts as started, so they do not wait for `expected_workers` again.
  void ResumeTraining();

  // An earlier incarnation has made steps that are lost. So Update() knows that training had begun.
  void NoteLostSteps() { resumes_ = true; }

  // Call it when all members are restored. If the job was launched with another number of workers
  // before, that launch is over, too.
  void BeginLaunch();

  // Marks a session whose connection broke as lost; its lease begins to run. Ignores unknown
  // sessions.
  void MarkLost(SessionId session, absl::Time now);

  // Ends the session at its own request. UNKNOWN_SESSION if it is not open. A worker with a
  // `failure` counts as evicted, so that it, or another process of its name, may join again.
  absl::Status Leave(SessionId session, absl::Time now, const std::string& failure = "");

  // Ends the session. Its worker may join again, and the job is not over for one more lease.
  void Evict(const SessionRecord& record, absl::Time now, Completions* completions);

  // Ends the session of that worker or observer, whose process may not join again. NOT_FOUND if no
  // open session has that name.
  absl::Status Ban(const std::string& worker, absl::Time now, Completions* completions);

  // Evicts sessions whose lease ended. Starts training when all expected workers are there, or when
  // the start timeout is over. A worker whose connection broke is not there; one that has left in
  // good order counts as there, unless another one came in its place. Training also counts as
  // started when as many workers as expected have come, and none may come back. If an earlier
  // incarnation has made steps, it is enough that all workers that have joined this one have been
  // gone for one lease, because the others may have left the earlier one. Call it after every
  // change and periodically.
  void Update(absl::Time now, Completions* completions);

  // Whether training has started and every worker has gone. CheckFinished() announces that.
  // Training that has not started is over, too, if every worker that has joined was evicted and
  // there is no start timeout, because it would wait for the other workers for ever.
  bool IsOver(absl::Time now) const;
  // Announces the end of training, once, when every worker has gone, and sends kDeserted to the
  // owner when every observer has gone too. `step` is the final step. A session has gone
  // if it has left, if the operator has evicted it, or if the server has evicted it one lease ago
  // and its process did not join again.
  void CheckFinished(Step step, absl::Time now, Completions* completions);

  // Sends an event to all present sessions and the owner.
  void Announce(const JobEvent& event, Completions* completions) const;

  // The fields of StepProgress that concern workers in the current step; the other fields keep
  // their defaults.
  StepProgress Progress() const;

  // The lowest rank that may still contribute to the current step. Before training has started it
  // is lower than every rank.
  absl::optional<Rank> FirstMissing() const;

  // Whether Update() has started training.
  bool started() const { return started_; }
  // How many of the expected workers were not there when training started, because the start
  // timeout was over, and have not come since. One in the place of a worker that is lost is none of
  // them.
  uint32_t CountLate() const;
  // Whether training has started and every worker has gone.
  bool finished() const { return finished_; }
  // Whether training is finished because an earlier incarnation had finished it.
  bool ended_before() const { return ended_before_ && finished_; }
  // Whether training was finished once. It stays true if workers have joined since.
  bool has_finished() const { return has_finished_; }
  const Launches& launches() const { return launches_; }
  const JobModel& model() const { return model_; }
  SessionTable& sessions() { return sessions_; }
  const SessionTable& sessions() const { return sessions_; }

 private:
  const ShardOptions options_;
  const JobListener owner_;
  SessionTable sessions_;
  JobModel model_;
  Launches launches_;
  absl::optional<absl::Time> first_join_;
  uint32_t done_ = 0;  // CountDone(), which walks all records
  uint32_t late_ = 0;  // CountLate() at the latest Update()
  bool started_ = false;
  bool had_workers_ = false;  // restored workers were open
  bool finished_ = false;
  bool has_finished_ = false;
  bool ended_before_ = false;
  bool resumes_ = false;                // an earlier incarnation has made steps
  std::vector<std::string> observers_;  // that a finished training waits for, by name
  absl::Time observers_until_ = absl::InfinitePast();
  bool deserted_ = false;  // finished, and every observer has gone
};

// Whether the model of the first worker fits a server with these options: else MODEL_TOO_LARGE or
// BAD_OPTIMIZER.
absl::Status CheckFitsServer(const JoinRequest& request, const ShardOptions& options);

}  // namespace sluice

#endif  // SLUICE_SERVER_MEMBERSHIP_ROSTER_H_
