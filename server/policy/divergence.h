// Tells when a job diverges or does not learn, from the losses that workers report and from the
// size of the parameters. DIVERGENCE.md in this folder says how the limits were chosen.
//
// It is pure arithmetic: the same steps give the same verdicts. A single bad batch is no verdict.
// Steps without a loss say nothing of losses: a job of which one worker reports them is judged by
// these, and one whose workers report none by its parameters alone.

#ifndef SLUICE_SERVER_POLICY_DIVERGENCE_H_
#define SLUICE_SERVER_POLICY_DIVERGENCE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "server/policy/bad_share.h"
#include "server/policy/loss_trend.h"
#include "server/policy/norm_growth.h"

namespace sluice {

// What the server does when training diverges.
enum class DivergenceAction {
  kWarn,
  kStop,        // end the job, but not because its loss stays
  kStopIfFlat,  // end it then, too
  kRestore,     // go back to a checkpoint from before that, but not because its loss stays
};
// "warn", "stop", "stop-if-flat" or "restore".
absl::string_view DivergenceActionName(DivergenceAction action);

enum class Divergence {
  kNotFinite,       // most gradients or losses are not finite any more
  kParametersGrow,  // see NormGrowth
  kLossRises,       // see LossTrend::rises()
  kDoesNotLearn,    // the loss stays at that of the first steps
};

// Whether `action` ends a job in which that was seen.
bool EndsJob(DivergenceAction action, Divergence what);
// Whether `action` makes the server go back when that is seen.
bool GoesBack(DivergenceAction action, Divergence what);

// What was seen of a step that was made.
struct StepReport {
  Step step;                    // that it reached
  absl::optional<double> loss;  // the mean of its gradients' finite losses; NaN if none is finite
  double norm_before = 0;       // of the parameters, on some scale
  double norm = 0;              // after the step, on the same scale
  // Its part of a round, in which each worker gives one gradient: at most 1.
  double rounds = 1;
  bool warms_up = false;  // the learning rate still rises
};

// Externally synchronized.
class DivergenceDetector {
 public:
  static constexpr double kCertainGrowth = 1e4;  // of the norm, for so many steps in a row:
  static constexpr uint64_t kCertainSteps = 16;  // nothing more is waited for
  // Rounds in which the loss must have fallen once. Without tuned rates, n workers that give a step
  // each need n times the steps of one, and so do as well in a round as one in a step.
  static constexpr double kPatience = 1000;
  // The share of gradients that are not finite is averaged over so many of each worker, and over
  // kFewest at least; that of losses over kFewest. After one that is not, the next seldom are.
  static constexpr double kGradientsOfEach = 4;
  static constexpr double kFewest = 16;
  static constexpr double kBadGradients = 0.6;  // that share: 15 in a row of one worker
  static constexpr uint64_t kFineSteps = 64;    // in a row: a suspicion from a checkpoint is over

  struct Verdict {
    Divergence what = Divergence::kNotFinite;
    Step since;        // the first step that showed it
    std::string seen;  // a clause: "the loss is 2.3, but …"
  };

  // Continues with the losses of a checkpoint, and with its suspect_since(). Before the first step.
  // A job that goes on from a later step than kPatience without such losses was trained before:
  // that its loss stays is no trouble, also after another restart.
  void Restore(const absl::optional<LossMemory>& losses, absl::optional<Step> suspect_since);
  absl::optional<LossMemory> losses() const;

  // A gradient that counts came from that worker while `step` was the server's step, one of
  // `workers` that take part; or it would count, but has NaN or infinity, or would make a step so.
  // Where others take part, the bad gradients of one worker in a row count as one, so that it does
  // not speak for them, however fast it is.
  void OnGradient(Step step, SessionId worker, bool finite, uint32_t workers);

  // After each step, in order.
  void OnStep(const StepReport& report);

  // The trouble, as long as it lasts. Of two, the first; but kDoesNotLearn gives way to others.
  const absl::optional<Verdict>& verdict() const { return verdict_; }

  // The first of the steps because of which there is a verdict, or may be soon; absent if the
  // latest ones are fine. The parameters from before it are the better ones to keep.
  absl::optional<Step> suspect_since() const;

 private:
  void NoteLoss(const StepReport& report);
  void NoteFlat(const StepReport& report, double rounds);
  void NoteGrowth(Step step);
  void NoteFine();
  double Growth() const;
  const BadShare& NotFinite() const { return gradients_.trouble() ? gradients_ : losses_; }
  void Judge(Step step);
  absl::optional<Divergence> Find() const;
  bool IsOver(Divergence what) const;
  Step SinceOf(Divergence what) const;
  absl::optional<Step> FirstBad() const;
  std::string Seen(Divergence what, Step step) const;

  bool begun_ = false;
  bool trained_before_ = false;
  LossTrend trend_;
  NormGrowth growth_;
  BadShare rising_;   // of the losses
  BadShare growing_;  // of the steps
  BadShare losses_;   // of the steps with losses: none is finite
  BadShare gradients_{kBadGradients, kBadGradients / 2};
  SessionId latest_bad_;  // gave the latest gradient that is not finite, and none was finite since
  bool grows_ = false;
  uint64_t certain_ = 0;  // steps in a row of kCertainGrowth
  double rounds_ = 0;     // since the latest loss
  double flat_ = 0;       // rounds in a row in which the loss has not fallen
  Step flat_since_;
  absl::optional<Step> suspected_;  // a checkpoint's suspect_since()
  uint64_t fine_ = 0;               // steps in a row with nothing bad
  absl::optional<Verdict> verdict_;
};

// What decides the advice to the user.
struct AdviceFacts {
  double learning_rate = 0;  // 0: the workers have their own
  double staleness = 0;      // mean, of the gradients that counted
  bool auto_helps = false;   // --staleness-rules=auto would use a rule, and none is in use
  bool clips = false;        // the norm of gradients is bounded
};

// What a user can do: a clause such as "lower the learning rate, which is 0.03".
std::string AdviceFor(Divergence what, const AdviceFacts& facts);

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_DIVERGENCE_H_
