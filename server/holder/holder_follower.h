// A holder of a job with several servers: it follows the sequencer's log, and joins it to the
// streams that workers send to this server. holder_commands.h has the protocol.
//
// The link's thread executes the commands, one after the other. Other threads bring the streams.
// The mutex protects what both use. Arithmetic and callbacks run outside it.
//
// The arithmetic of steps and checkpoints runs on an executor of its own, in the order of the
// commands, so that pushes are admitted and pulls released meanwhile. A command decides at its
// place of the log what the arithmetic works on. Files are written on another executor, in the same
// order, so that no step waits for the disk.

#ifndef SLUICE_SERVER_HOLDER_HOLDER_FOLLOWER_H_
#define SLUICE_SERVER_HOLDER_HOLDER_FOLLOWER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/executor.h"
#include "common/base/parallel.h"
#include "server/aggregation/pending_push.h"
#include "server/holder/early_calls.h"
#include "server/holder/held_rows.h"
#include "server/holder/holder.h"
#include "server/holder/holder_commands.h"
#include "server/holder/pull_result.h"
#include "server/holder/stripe_storage.h"
#include "server/holder/told_names.h"
#include "server/state/step_journal.h"
#include "server/state/stripe_checkpoint.h"
#include "server/state/table_memory.h"

namespace sluice {

class HolderFollower {
 public:
  using ReportListener = std::function<void(const HolderReport&)>;
  // Gets the push when it is admitted, or the error if it never is.
  using StreamCallback = std::function<void(absl::StatusOr<std::unique_ptr<PendingPush>>)>;
  using PullCallback = std::function<void(const absl::StatusOr<PullResult>&)>;

  // Where tasks run, one after the other. Null: on the thread that executes the commands.
  struct Tasks {
    std::unique_ptr<Executor> arithmetic;
    std::unique_ptr<Executor> files;
  };

  // `parallel` and `storage` outlive it; without `storage`, commands on checkpoints fail. `report`
  // is called outside all locks, by an executor, by the journal's thread, or by the thread that
  // executes a command or brings a stream. The destructor first drains.
  HolderFollower(StripePlace place, SnapshotMemory memory, Parallel& parallel,
                 ReportListener report, StripeStorage* storage = nullptr, Tasks tasks = {},
                 TableMemory table_memory = {});
  ~HolderFollower() { Drain(); }
  // Waits for the tasks, and ends the journal. No command may come any more.
  void Drain();

  // Executes the next command of the log. One thread at a time; all other methods: any thread.
  void Execute(const HolderCommand& command) ABSL_LOCKS_EXCLUDED(mu_);

  // A worker's stream has brought its header. An attempt has one stream. The stream waits at its
  // header until the push is admitted. Then `start` is called, once. Errors of `start`:
  // - CANCELLED if the sequencer drops the push, or goes on to a later push of the session
  // - UNKNOWN_SESSION if the session ends, or the log does not open it
  // - BAD_ARGUMENT if too many calls wait (early_calls.h)
  // The first two errors are the same if their cause came before the stream.
  //
  // If the push is dropped or its session ends between its admission and the end of EndPush(),
  // `cancel` is called, unless it is null. Returns an id for CancelPush(). Returns 0 if the stream
  // did not wait: `start` was then called before this returned.
  PushId BeginPush(const PushHeader& header, uint32_t attempt, StreamCallback start,
                   std::function<void()> cancel = nullptr) ABSL_LOCKS_EXCLUDED(mu_);
  // The call of a stream that waits at its header has ended. Returns whether it waited: then
  // `start` is never called. If not, `start` has been called, or another thread is about to call
  // it.
  bool CancelPush(PushId id) ABSL_LOCKS_EXCLUDED(mu_);
  // Its payload is here, or `fault` is the error that was found in it. Returns the answer to the
  // stream: OK if the part is taken, or the error in it; or CANCELLED or UNKNOWN_SESSION, as above,
  // if the push was dropped meanwhile or its session has ended: then nothing happens.
  absl::Status EndPush(std::unique_ptr<PendingPush> push, const absl::Status& fault)
      ABSL_LOCKS_EXCLUDED(mu_);

  // `done` is called once, when the pull is released. Errors and the id are those of BeginPush().
  PullId Pull(const PullName& name, PullCallback done) ABSL_LOCKS_EXCLUDED(mu_);
  // The call of a pull that waits has ended. Returns whether it waited, as CancelPush() does.
  bool CancelPull(PullId id) ABSL_LOCKS_EXCLUDED(mu_);

  // See HeldStripe.
  void EndEarlier(SessionId base) ABSL_LOCKS_EXCLUDED(mu_);
  void EndUnknown() ABSL_LOCKS_EXCLUDED(mu_);

  // EndJob's, once it has come.
  absl::optional<int> exit_code() const ABSL_LOCKS_EXCLUDED(mu_);

  HeldRows rows() const ABSL_LOCKS_EXCLUDED(mu_);
  // For methods that any thread may call; null if there are none, or before OpenModel.
  std::shared_ptr<const RowTables> tables() const ABSL_LOCKS_EXCLUDED(mu_);
  // Of the stripe; null before OpenModel.
  std::shared_ptr<const Layout> layout() const ABSL_LOCKS_EXCLUDED(mu_);
  // The latest snapshot of the stripe; null before the first.
  std::shared_ptr<const Snapshot> latest() const ABSL_LOCKS_EXCLUDED(mu_);
  // The newest one whose elements before `end` are final, perhaps of the step that is being made.
  // There are parameters.
  std::shared_ptr<const Snapshot> newest(uint64_t end) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct WaitingStream {
    PushHeader header;
    StreamCallback start;
    std::function<void()> cancel;
  };
  using EarlyStreams = EarlyCalls<PushId, PushName, WaitingStream>;
  using EarlyPulls = EarlyCalls<PullId, PullName, PullCallback>;
  struct Arrival {
    AdmitPush admitted;
    std::function<void()> cancel;  // or null
  };

  void Do(const OpenModel& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const LoadCheckpoint& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const ReplayStep& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const BeginJournal& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const OpenSession& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const AdmitPush& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const DropPush& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const TakeParameters& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const AddPush& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const StepOrder& order) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const PublishStep& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const ReleasePull& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const DropPull& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const EndSession& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const TakeCheckpoint& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const KeepCheckpoints& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const SummarizeTensor& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const EndJob& command) ABSL_LOCKS_EXCLUDED(mu_);

  static void End(const std::vector<EarlyStreams::Ended>& streams,
                  const std::vector<EarlyPulls::Ended>& pulls);
  static void Cancel(const Arrival& arrival) {
    if (arrival.cancel) arrival.cancel();
  }

  // The log has come to this name. Returns the streams that wait with this or a lower one.
  std::vector<StreamCallback> GoOnTo(const PushName& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::unique_ptr<PendingPush> Start(const AdmitPush& admitted, WaitingStream& stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Arrival> StopArrivals(SessionId session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<Snapshot> MakeFirst(Step step) ABSL_LOCKS_EXCLUDED(mu_);
  void Publish(std::shared_ptr<const Snapshot> snapshot) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Step> Load(const LoadCheckpoint& command) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status LoadSum(const ReplayStep& command);
  void EndStep(Step step);
  void Save(const TakeCheckpoint& command, const StripeCheckpoint& stripe,
            const absl::Status& replayed);
  absl::Status CheckPart(const PendingPush& push) const ABSL_LOCKS_EXCLUDED(mu_);
  bool MeasuresNorm(PushId push) const ABSL_LOCKS_EXCLUDED(mu_);
  std::unique_ptr<PendingPush> Take(PushId push) ABSL_LOCKS_EXCLUDED(mu_);
  SnapshotPair BeginStep(PushId first = PushId()) ABSL_LOCKS_EXCLUDED(mu_);

  const StripePlace place_;
  const ReportListener report_;
  Parallel& parallel_;
  StripeStorage* const storage_;
  mutable absl::Mutex mu_;
  Holder holder_ ABSL_GUARDED_BY(mu_);
  ToldNames told_ ABSL_GUARDED_BY(mu_);
  absl::optional<int> exit_code_ ABSL_GUARDED_BY(mu_);
  EarlyStreams streams_ ABSL_GUARDED_BY(mu_);                    // not admitted yet
  std::map<PushName, AdmitPush> admitted_ ABSL_GUARDED_BY(mu_);  // their streams have not come
  std::map<PushId, Arrival> arriving_ ABSL_GUARDED_BY(mu_);
  EarlyPulls pulls_ ABSL_GUARDED_BY(mu_);                         // not released yet
  std::map<PullName, PullResult> released_ ABSL_GUARDED_BY(mu_);  // their calls have not come
  // Only the executor's tasks use them, once the model is open.
  ModelExecutor* model_ = nullptr;        // the holder's
  std::unique_ptr<PendingPush> last_;     // the step's last gradient
  std::unique_ptr<StepJournal> journal_;  // or null
  Incarnation incarnation_;               // of the journal
  StepRecord
      record_;  // of the step that is made: its checksum, and 1 for gradients if it has a sum
  absl::optional<uint64_t> expected_;    // the checksum of a step that is made again
  absl::Status replayed_;                // why steps could not be made again, or OK
  std::shared_ptr<const Layout> whole_;  // of the vector; the tasks use it, too
  const std::unique_ptr<Executor> arithmetic_;
  const std::unique_ptr<Executor> files_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_HOLDER_HOLDER_FOLLOWER_H_
