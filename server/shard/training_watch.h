// Watches whether the job learns, and keeps the warnings about it: for the log, the Inspector and
// the closing table. It decides no rule of a step. ShardWatch owns it and tells it what happens.
//
// There is at most one warning of each kind. A warning that is over is kept until one of its kind
// begins again.

#ifndef SLUICE_SERVER_SHARD_TRAINING_WATCH_H_
#define SLUICE_SERVER_SHARD_TRAINING_WATCH_H_

#include <cstdint>
#include <deque>
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

// What has trained in this server process, and of what its steps were made.
struct Trained {
  static constexpr size_t kRecent = 20;

  uint32_t workers = 0;  // the most at once, less those that have left since
  uint64_t samples = 0;
  std::deque<double> losses;  // of the latest kRecent steps with a finite one

  void Add(uint64_t samples_of_step, absl::optional<double> loss);
  absl::optional<double> loss() const;  // the mean of the latest
};

// Externally synchronized. `workers` is the number of those that take part.
class TrainingWatch {
 public:
  // After so many pushes, the share of them that was dropped is judged.
  static constexpr uint64_t kJudgedPushes = 256;

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
  void AddGradient(SessionId worker, absl::optional<float> loss, uint32_t samples);

  // The step is made. Returns `report` with its loss and its rounds, which this object knows.
  StepReport OnStep(StepReport report, uint32_t workers, AdviceSource facts);

  // The gradients of the step under way are left out of it, because it would not be finite.
  void LeaveOut(Step step, uint32_t workers, AdviceSource facts);

  // A gradient that is not finite was refused or skipped.
  void OnNotFinite(Step step, SessionId worker, uint32_t workers, AdviceSource facts);

  // Call it when a worker has joined, and periodically. Evicted workers count as lost only as far
  // as the job is smaller than before, because other workers may have taken their places. Only an
  // eviction begins the warning. If workers are done after an eviction, that does not begin it.
  void OnWorkers(Step step, const WorkerCounts& now);
  // A worker has left in good order. The job's size becomes smaller by one.
  void OnLeave();

  // `late` of `expected` workers have not joined, and training has begun without them.
  void OnLate(Step step, uint32_t late, uint32_t expected);

  // `quorum` is the quorum of the mode backup. In other modes it is 0, because a quorum that is too
  // large matters only in backup. `workers` is how many workers may contribute to the step. Workers
  // that have left in good order count, too: when some are done, the others will be done soon.
  void OnQuorum(Step step, uint32_t quorum, uint32_t workers);

  // `bounded`: whether the mode drops gradients only because of their staleness. Such a mode should
  // drop few.
  void OnPushes(Step step, const PushCounters& counters, bool bounded);

  // Whether training diverges now, and the job has to end, or has to go back, because of that.
  bool Ends() const;
  bool GoesBack() const;
  const Trained& trained() const { return trained_; }
  // In the order in which they came.
  const std::vector<TrainingWarning>& warnings() const { return warnings_; }
  // The sentence about the latest divergence, which may be over. Empty: there was none.
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
    uint64_t samples = 0;
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
  Trained trained_;
  uint32_t done_ = 0;     // workers that have left in good order
  uint32_t evicted_ = 0;  // workers, at the last OnWorkers()
  uint64_t judged_ = 0;   // pushes, accepted and dropped
  uint64_t dropped_ = 0;  // of these
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_TRAINING_WATCH_H_
