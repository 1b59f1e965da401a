// Does what the Coordinator says is due: adds gradients, makes steps, takes checkpoints. It tells
// all servers, waits for them, and reports back to the Coordinator.
//
// A thread that finds work due and nobody working has all of it done, in Advance(). It does the
// work itself if there is one server, the model has at most kPartElements, and there is no step
// listener, which would write a file. Otherwise executors.steps does it, and waits for the other
// servers. Arithmetic, journal writes and callbacks run without the mutex.

#ifndef SLUICE_SERVER_SHARD_STEP_LOOP_H_
#define SLUICE_SERVER_SHARD_STEP_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/trace/trace.h"
#include "server/aggregation/step_director.h"
#include "server/replica/arrived_pushes.h"
#include "server/replica/executors.h"
#include "server/replica/server_stripe.h"
#include "server/shard/job_state.h"
#include "server/shard/leader_store.h"
#include "server/shard/next_action.h"
#include "server/shard/step_stopwatch.h"
#include "server/state/step_journal.h"

namespace sluice {

// Any thread may call Advance(), Replay(), Digest() and IsLarge(). The setters are called before
// the first session opens, so no other thread adds a gradient or makes a step meanwhile. With
// several servers and a directory, other threads may call Advance() then; see Shard.
class StepLoop {
 public:
  // Both outlive it.
  StepLoop(JobState& job, LeaderStore& store);

  void SetStepListener(std::function<void(Step)> listener) { step_listener_ = std::move(listener); }
  void SetJournal(StepJournal* journal);
  void KeepRemovedRows() { keeps_removed_rows_ = true; }  // checkpoints will need them
  void SaveEndWith(CheckpointCallback save) { save_end_ = std::move(save); }

  // These two are called with the mutex. Open(): the model is known. It opens the stripe, here and
  // on the other servers.
  void Open(const std::shared_ptr<const Layout>& layout, const OptimizerConfig& optimizer,
            std::unique_ptr<ProgramOptimizer> program);
  void NoteRestored() { director_->NoteRestored(); }  // the optimizer has made steps before

  // Has all work done that is due.
  void Advance() ABSL_LOCKS_EXCLUDED(job_.mu);
  // See Shard.
  absl::Status Replay(const StepRecord& record, absl::Span<const float> sum,
                      absl::Span<const TableSums> rows) ABSL_LOCKS_EXCLUDED(job_.mu);
  absl::optional<uint32_t> Digest(absl::Duration longest) ABSL_LOCKS_EXCLUDED(job_.mu);
  // Whether a step takes longer than another thread takes to wake up.
  bool IsLarge() const ABSL_LOCKS_EXCLUDED(job_.mu);

 private:
  // An action, and the gradient of its contribution.
  struct Work {
    NextAction action;
    std::unique_ptr<PendingPush> gradient;
  };

  bool StartAdvancing() ABSL_LOCKS_EXCLUDED(job_.mu);
  bool StartAlone(absl::Duration longest) ABSL_LOCKS_EXCLUDED(job_.mu);
  Work DecideNext() ABSL_LOCKS_EXCLUDED(job_.mu);
  void DoAll(Work work) ABSL_LOCKS_EXCLUDED(job_.mu);
  void Accumulate(Work work) ABSL_LOCKS_EXCLUDED(job_.mu);
  void AddToSum(Work& work, bool last) ABSL_LOCKS_EXCLUDED(job_.mu);
  void Apply(Work work) ABSL_LOCKS_EXCLUDED(job_.mu);
  std::vector<StripeReport> CarryOnAll(const StepOrder& order,
                                       absl::Duration longest = absl::InfiniteDuration())
      ABSL_LOCKS_EXCLUDED(job_.mu);
  void LeaveOut(const BadNumber& bad, Step step) ABSL_LOCKS_EXCLUDED(job_.mu);
  void AppendToJournal(const NextAction& action) ABSL_LOCKS_EXCLUDED(job_.mu);
  void Publish(const NextAction& action, Step next) ABSL_LOCKS_EXCLUDED(job_.mu);
  void MakeCheckpoint(const NextAction& action) ABSL_LOCKS_EXCLUDED(job_.mu);
  absl::Status MakeAgain(const StepRecord& record, absl::Span<const float> sum,
                         absl::Span<const TableSums> rows) ABSL_LOCKS_EXCLUDED(job_.mu);

  JobState& job_;
  ServerStripe& stripe_;
  ArrivedPushes& arrived_;
  Executors& executors_;
  Trace* const trace_;
  std::function<void(Step)> step_listener_;
  bool journals_ = false;
  bool keeps_removed_rows_ = false;
  CheckpointCallback save_end_;  // or null
  bool advancing_ ABSL_GUARDED_BY(job_.mu) = false;
  // Only the advancing thread uses them, once the model is known.
  StepStopwatch stopwatch_;
  std::unique_ptr<StepDirector> director_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_STEP_LOOP_H_
