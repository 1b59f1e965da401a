// A replica is a server's part in a job that another server leads. It executes the leader's log
// (replica_commands.h) on its stripe, and joins the log to the calls that workers make here. It
// decides nothing: admission and answers are the leader's.
//
// The link's thread executes the commands, one after the other. Other threads bring the calls.
// WorkerCalls, ReplicaTasks and the ServerStripe do the work, each with its own state.

#ifndef SLUICE_SERVER_REPLICA_REPLICA_H_
#define SLUICE_SERVER_REPLICA_REPLICA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "common/base/parallel.h"
#include "server/replica/arrived_pushes.h"
#include "server/replica/executors.h"
#include "server/replica/parameter_store.h"
#include "server/replica/replica_commands.h"
#include "server/replica/replica_tasks.h"
#include "server/replica/stripe_storage.h"
#include "server/replica/worker_calls.h"
#include "server/state/server_status.h"
#include "server/state/table_memory.h"

namespace sluice {

// Any thread may call any method, unless a comment says otherwise.
class Replica final : public ParameterStore {
 public:
  // Called by the thread that executes commands: `open` before the first other command on the
  // session, `end` after the last.
  struct SessionListener {
    std::function<void(const OpenSession&)> open;
    std::function<void(SessionId)> end;
  };

  // Reports go to `report`, from any thread, outside all locks. Checkpoints go to `storage`, which
  // may be null, and outlives this. Files are written on executors.files.
  Replica(StripePlace place, SnapshotMemory memory, std::unique_ptr<Parallel> parallel,
          Executors executors, const ReportListener& report, StripeStorage* storage = nullptr,
          TableMemory table_memory = {});
  ~Replica() override { Drain(); }
  // Waits for all tasks, also those that write files, and ends the journal. No command may come any
  // more.
  void Drain();
  void EndCopies() { tasks_.EndCopies(); }  // see ReplicaTasks

  void Listen(SessionListener listener);  // once, before the first command
  // Executes the next command of the log, which CommandCheck has let through. One thread at a time.
  void Execute(const ReplicaCommand& command);
  // EndJob's, once it has come.
  absl::optional<int> exit_code() const ABSL_LOCKS_EXCLUDED(mu_);
  StripeFigures Describe() const;
  // The calls that wait for the log, and those that arrive.
  WorkerCalls& calls() { return calls_; }

  // The leader judges offers, which are pushes of the sequence 0 here.
  absl::StatusOr<absl::optional<InitializeOutcome>> JudgeOffer(SessionId session,
                                                               uint32_t attempt) override;
  PushId BeginInitialize(SessionId session, uint32_t attempt, InitializeStartCallback start,
                         std::function<void()> cancel) override;
  PushId FinishInitialize(std::unique_ptr<PendingPush> parameters,
                          InitializeCallback done) override;
  void AbandonInitialize(std::unique_ptr<PendingPush> parameters) override;

  // A push that has come is answered PART_TAKEN.
  PushId BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                   std::function<void()> cancel) override;
  bool CancelPush(PushId id) override { return calls_.CancelPush(id); }
  PushId FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) override;
  void RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why,
                  PushCallback done) override;
  void AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) override;
  bool CancelGathering(PushId /*id*/) override { return false; }

  PullId Pull(const PullRequest& request, PullCallback done) override;
  bool CancelPull(PullId id) override { return calls_.CancelPull(id); }

  // For a worker with that session. See ReplicaTasks::CopyStripe(), and WorkerCalls::CheckOpen().
  void CopyStripe(SessionId session, StripeCopyCallback done);

  bool is_striped() const override { return true; }
  std::string NameOf(SessionId /*session*/) const override { return ""; }

 private:
  const StripePlace place_;
  SessionListener listener_;
  ArrivedPushes arrived_;
  WorkerCalls calls_;
  ReplicaTasks tasks_;
  mutable absl::Mutex mu_;
  absl::optional<int> exit_code_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_REPLICA_H_
