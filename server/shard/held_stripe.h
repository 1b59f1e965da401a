// The parameters of a server that holds one stripe of the vector: joins the calls of workers to a
// follower of the sequencer's log (holder_follower.h). Admission and answers are the sequencer's.

#ifndef SLUICE_SERVER_SHARD_HELD_STRIPE_H_
#define SLUICE_SERVER_SHARD_HELD_STRIPE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/parallel.h"
#include "server/holder/holder_follower.h"
#include "server/shard/executors.h"
#include "server/shard/parameter_store.h"
#include "server/state/server_status.h"
#include "server/state/table_memory.h"

namespace sluice {

// Any thread may call any method, unless a comment says otherwise.
class HeldStripe final : public ParameterStore {
 public:
  // Called by the thread that executes commands: `open` before the first other command on the
  // session, `end` after the last.
  struct SessionListener {
    std::function<void(const OpenSession&)> open;
    std::function<void(SessionId)> end;
  };

  // Reports go to `report`, from any thread, outside all locks.
  // Checkpoints go to `storage`, which may be null, and outlives this.
  HeldStripe(StripePlace place, SnapshotMemory memory, std::unique_ptr<Parallel> parallel,
             Executors executors, HolderFollower::ReportListener report,
             StripeStorage* storage = nullptr, TableMemory table_memory = {});
  ~HeldStripe() override;
  // Waits for all tasks, also those that write files.
  void Drain();

  void Listen(SessionListener listener);  // once, before the first command
  // Executes the next command of the log, which CommandCheck has let through. One thread at a time.
  void Execute(const HolderCommand& command);
  // EndJob's, once it has come.
  absl::optional<int> exit_code() const { return follower_.exit_code(); }
  StripeFigures Describe() const;
  HeldRows rows() const { return follower_.rows(); }
  // The sessions of the sequencer's incarnation have the numbers after `base`. Calls of earlier
  // sessions end with UNKNOWN_SESSION from now on, also those that wait already. Their workers may
  // not know yet that the sequencer went back. Call it before the first command.
  void EndEarlier(SessionId base) { follower_.EndEarlier(base); }
  // Ends calls with UNKNOWN_SESSION if the log has not opened their sessions and if they waited at
  // an earlier EndUnknown() already. Call it every few seconds while the log comes in.
  void EndUnknown() { follower_.EndUnknown(); }

  // The sequencer judges offers.
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
  bool CancelPush(PushId id) override { return follower_.CancelPush(id); }
  PushId FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) override;
  void RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why,
                  PushCallback done) override;
  void AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) override;
  bool CancelGathering(PushId /*id*/) override { return false; }

  PullId Pull(const PullRequest& request, PullCallback done) override;
  bool CancelPull(PullId id) override { return follower_.CancelPull(id); }
  std::shared_ptr<const Snapshot> Newest(uint64_t end) const override {
    return follower_.newest(end);
  }

  bool is_striped() const override { return true; }
  std::shared_ptr<const Layout> held_layout() const override { return follower_.layout(); }
  std::string NameOf(SessionId /*session*/) const override { return ""; }
  bool shares_memory() const override { return memory_ == SnapshotMemory::kShared; }
  Parallel& parallel() override { return *parallel_; }
  Executors& executors() override { return executors_; }
  Trace* trace() const override { return nullptr; }
  WireBytes& wire_bytes() override { return wire_bytes_; }
  ActivePulls& active_pulls() override { return active_pulls_; }
  const SpanListener& on_span() const override { return on_span_; }

 private:
  absl::Status End(std::unique_ptr<PendingPush> push, const absl::Status& fault);

  const SnapshotMemory memory_;
  const std::unique_ptr<Parallel> parallel_;
  Executors executors_;
  WireBytes wire_bytes_;
  ActivePulls active_pulls_;
  const SpanListener on_span_;
  SessionListener listener_;
  HolderFollower follower_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_HELD_STRIPE_H_
