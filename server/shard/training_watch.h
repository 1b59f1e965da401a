// Watches whether the job learns, and keeps the warnings about it: for the log, the Inspector and
// the closing table. It decides no rule of a step. ShardWatch owns it and tells it what happens.
//
// There is at most one warning of each kind. One that is over stays, until its kind comes again.

#ifndef SLUICE_SERVER_SHARD_TRAINING_WATCH_H_
#define SLUICE_SERVER_SHARD_TRAINING_WATCH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "server/policy/divergence.h"
#include "server/state/push_counters.h"
#include "server/state/training_warning.h"
#include "server/state/worker_counts.h"

namespace sluice {

// Called only when there is something to advise.
using AdviceSource = absl::FunctionRef<AdviceFacts()>;

// Externally synchronized. `workers` is the number of those that take part.
class TrainingWatch {
 public:
  static constexpr uint64_t kJudgedPushes = 256;  // after which their dropped share is judged

  // `action` decides when the job ends or goes back. `warnings` are those to begin with.
  explicit TrainingWatch(DivergenceAction action, std::vector<TrainingWarning> warnings = {})
      : action_(action), warnings_(std::move(warnings)) {}

  // See DivergenceDetector.
  void Restore(const absl::optional<LossMemory>& losses, absl::optional<Step> suspect_since) {
    detector_.Restore(losses, suspect_since);
  }
  absl::optional<LossMemory> losses() const { return detector_.losses(); }
  absl::optional<Step> suspect_since() const { return detector_.suspect_since(); }

  // A gradient of the step under way, with the loss of its batch, if it was reported.
  void AddGradient(SessionId worker, absl::optional<float> loss);

  // The step is made. Completes `report` by the loss and the rounds, which this object knows, and
  // returns it.
  StepReport OnStep(StepReport report, uint32_t workers, AdviceSource facts);

  // The gradients of the step under way are left out of it, because it would not be finite.
  void LeaveOut(Step step, uint32_t workers, AdviceSource facts);

  // A gradient that is not finite was refused or skipped.
  void OnNotFinite(Step step, SessionId worker, uint32_t workers, AdviceSource facts);

  // Call it when a worker has joined, and periodically. Another worker takes the place of one that
  // was evicted, so only those are lost that make the job smaller than it was. The warning begins
  // with an eviction; that other workers are done makes no loss of an earlier one.
  void OnWorkers(Step step, const WorkerCounts& now);
  // A worker has left in good order: the job is smaller by it.
  void OnLeave();

  // `late` of `expected` workers have not joined, and training has begun without them.
  void OnLate(Step step, uint32_t late, uint32_t expected);

  // `quorum` is that of the mode backup; in the others it is 0, since the number of workers does
  // not matter there. `workers` may contribute to the step. Those that have left in good order do
  // not make them too few: they end, and soon the others do.
  void OnQuorum(Step step, uint32_t quorum, uint32_t workers);

  // `bounded`: the mode drops gradients for their age alone, and should drop few.
  void OnPushes(Step step, const PushCounters& counters, bool bounded);

  // Whether training diverges now, so that the job ends, or goes back.
  bool Ends() const;
  bool GoesBack() const;
  // In the order in which they came.
  const std::vector<TrainingWarning>& warnings() const { return warnings_; }
  // The sentence of the divergence that is or was last; empty if there was none.
  const std::string& divergence() const { return divergence_; }

  // What the log must say since the last call: warnings that began or are over.
  std::vector<std::string> TakeNews() { return std::exchange(news_, {}); }

 private:
  // The gradients of the step under way.
  struct UnderWay {
    std::vector<SessionId> workers;
    uint32_t losses = 0;
    uint32_t finite_losses = 0;
    double loss_sum = 0;  // of these
  };

  void TakeGradients(Step step, bool finite, uint32_t workers);
  void NoteVerdict(Step step, AdviceSource facts);
  void Begin(WarningKind kind, Step since, const std::string& text);
  void End(WarningKind kind, Step over);
  bool Close(WarningKind kind, Step over);
  bool Lasts(WarningKind kind) const;

  const DivergenceAction action_;
  DivergenceDetector detector_;
  std::vector<TrainingWarning> warnings_;
  std::vector<std::string> news_;
  std::string divergence_;
  absl::optional<WarningKind> diverges_as_;
  UnderWay under_way_;
  uint32_t size_ = 0;     // of the job: the most workers at once, less those that are done
  uint32_t done_ = 0;     // workers that have left in good order
  uint32_t evicted_ = 0;  // workers, at the last look
  uint64_t judged_ = 0;   // pushes, accepted and dropped
  uint64_t dropped_ = 0;  // of these
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_TRAINING_WATCH_H_
