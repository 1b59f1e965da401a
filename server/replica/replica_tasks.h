// Carries out the commands of the leader's log that work on a stripe: steps, checkpoints, the
// journal, and tensors that somebody looks at.
//
// Arithmetic runs on an executor, in the order of the commands, so that pushes are admitted and
// pulls released meanwhile. PublishStep is executed at once, on the calling thread. The leader
// sends it when all servers have made the step, so no earlier task that needs the snapshot before
// is left. Files are written on another executor, in the same order, so that no step waits for the
// disk.

#ifndef SLUICE_SERVER_REPLICA_REPLICA_TASKS_H_
#define SLUICE_SERVER_REPLICA_REPLICA_TASKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/executor.h"
#include "server/replica/arrived_pushes.h"
#include "server/replica/replica_commands.h"
#include "server/replica/server_stripe.h"
#include "server/replica/stripe_storage.h"
#include "server/replica/worker_calls.h"
#include "server/state/step_journal.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// One thread calls Do(), in the log's order.
class ReplicaTasks {
 public:
  // All outlive it. Without `storage`, commands on checkpoints fail, or do nothing. `report` is
  // called by the executors, by the journal's thread, or by the thread that executes a command.
  ReplicaTasks(ServerStripe& stripe, ArrivedPushes& arrived, ReportListener report,
               StripeStorage* storage, Executor& arithmetic, Executor& files);
  // Waits for the tasks, and ends the journal. No command may come any more.
  void Drain();
  // Answers all who wait for a copy. Before the calls end that wait for it. Any thread.
  void EndCopies();

  // Copies the stripe as the latest step has left it. While a step is written, it waits until that
  // is published. NOT_INITIALIZED before there are parameters; UNAVAILABLE from EndCopies() on. Any
  // thread may call it.
  void CopyStripe(StripeCopyCallback done);

  void Do(const OpenModel& command, StripePlace place);
  void Do(const LoadCheckpoint& command);
  void Do(const ReplayStep& command);
  void Do(const BeginJournal& command);
  void Do(const TakeParameters& command);
  void Do(const AddPush& command);
  void Do(const StepOrder& order);
  void Do(const PublishStep& command);
  void Do(const TakeCheckpoint& command);
  void Do(const KeepCheckpoints& command);
  void Do(const SummarizeTensor& command);

 private:
  absl::StatusOr<Step> Load(const LoadCheckpoint& command);
  absl::Status LoadSum(const ReplayStep& command);
  void JournalStep(Step step);
  absl::StatusOr<std::shared_ptr<const StripeCheckpoint>> Copied();
  void GiveCopies();
  void Save(const TakeCheckpoint& command, const StripeCheckpoint& checkpoint,
            const absl::Status& replayed);

  ServerStripe& stripe_;
  ArrivedPushes& arrived_;
  const ReportListener report_;
  StripeStorage* const storage_;
  Executor& arithmetic_;
  Executor& files_;
  std::shared_ptr<const Layout> whole_;  // of the vector, once the model is open
  // Only tasks of `arithmetic` use these.
  std::unique_ptr<StepJournal> journal_;    // or null
  Incarnation incarnation_;                 // of the journal
  bool made_ = false;                       // the latest order of the step is kMake
  absl::optional<uint64_t> expected_;       // the checksum of a step that is made again
  absl::Status replayed_;                   // why steps could not be made again, or OK
  bool writes_ = false;                     // a step, which is not published yet
  bool ended_ = false;                      // EndCopies()
  std::vector<StripeCopyCallback> copies_;  // that wait until no step is written
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_REPLICA_TASKS_H_
