// Watches whether the job learns, and keeps the warnings about it: for the log, the Inspector and
// the closing table. It decides no rule of a step; Coordinator owns it and tells it what happens.
//
// There is at most one warning of each kind. One that is over stays, until its kind comes again.

#ifndef SLUICE_SERVER_SHARD_TRAINING_WATCH_H_
#define SLUICE_SERVER_SHARD_TRAINING_WATCH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "server/policy/divergence.h"
#include "server/state/push_counters.h"
#include "server/state/training_warning.h"

namespace sluice {

// Externally synchronized.
class TrainingWatch {
 public:
  static constexpr uint64_t kJudgedPushes = 256;  // after which their dropped share is judged
  // Steps for which checkpoints are withheld: more than it takes to tell whether training diverges.
  static constexpr uint64_t kLongestWithholding = 300;

  // `action` decides when the job ends, and so which checkpoints are withheld.
  explicit TrainingWatch(DivergenceAction action) : action_(action) {}

  // The job goes on from a checkpoint.
  void Resume() { detector_.Resume(); }

  // A gradient of the step under way, with the loss of its batch, if it was reported.
  void AddGradient(absl::optional<float> loss);

  // The step is made. `report` lacks the loss and has_gradients, which this object knows.
  void OnStep(StepReport report, const AdviceFacts& facts);

  // The gradients of the step under way are left out of it.
  void LeaveOut();

  // `not_finite` gradients, of all so far, were refused or left out.
  void OnNotFinite(Step step, uint64_t not_finite, uint32_t workers, const AdviceFacts& facts);

  // `present` workers take part, and `evicted` ones have not come back by their names. Another
  // worker takes the place of one that was evicted, so only those are lost that make the job
  // smaller than it was. Call it when a worker has joined, and periodically.
  void OnWorkers(Step step, uint32_t present, uint32_t evicted);

  // `bounded`: the mode drops gradients for their age alone, and should drop few.
  void OnPushes(Step step, const PushCounters& counters, bool bounded);

  uint64_t not_finite() const { return not_finite_; }  // as OnNotFinite() was told

  // `step` is made, and a checkpoint of it is due or not. Returns whether to take one. One that is
  // withheld stays due, and is taken as soon as Withholds() is false.
  bool TakesCheckpoint(Step step, bool due);

  // Whether training diverges now, so that the job ends.
  bool Ends() const;
  // Whether the parameters of `step`, the latest, must not replace saved ones, because training
  // seems to diverge, so that the job may end. After kLongestWithholding steps they may, unless a
  // verdict is sure to come.
  bool Withholds(Step step) const;
  // In the order in which they came.
  const std::vector<TrainingWarning>& warnings() const { return warnings_; }
  // The sentence of the divergence that is or was last; empty if there was none.
  const std::string& divergence() const { return divergence_; }

  // What the log must say since the last call: warnings that began or are over.
  std::vector<std::string> TakeNews() { return std::exchange(news_, {}); }

 private:
  void NoteVerdict(Step step, const AdviceFacts& facts);
  void NoteSuspicion(Step step);
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
  absl::optional<Step> suspect_since_;  // all steps since this one
  bool checkpoint_due_ = false;
  bool told_ = false;          // that it is withheld
  uint32_t most_present_ = 0;  // workers at once
  // Of the step under way.
  uint32_t gradients_ = 0;
  uint32_t losses_ = 0;
  double loss_sum_ = 0;
  uint64_t not_finite_ = 0;  // in all
  uint64_t judged_ = 0;      // pushes, accepted and dropped
  uint64_t dropped_ = 0;     // of these
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_TRAINING_WATCH_H_
