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
#include "server/policy/not_finite_run.h"

namespace sluice {

// What the server does when training diverges.
enum class DivergenceAction {
  kWarn,
  kStop,        // end the job, but not because its loss stays
  kStopIfFlat,  // end it then, too
};
absl::string_view DivergenceActionName(DivergenceAction action);  // "warn", "stop", "stop-if-flat"

enum class Divergence {
  kNotFinite,       // no gradient and no loss is finite any more
  kParametersGrow,  // see NormGrowth
  kLossRises,       // see LossTrend::rises()
  kDoesNotLearn,    // the loss stays at that of the first steps
};

// Whether `action` ends a job in which that was seen.
bool EndsJob(DivergenceAction action, Divergence what);

// What was seen of a step that was made.
struct StepReport {
  Step step;                    // that it reached
  absl::optional<double> loss;  // the mean of its gradients' losses, which may be NaN
  double norm_before = 0;       // of the parameters, on some scale
  double norm = 0;              // after the step, on the same scale
  bool has_gradients = true;    // false: it was made without any
  bool warms_up = false;        // the learning rate still rises
};

// Externally synchronized.
class DivergenceDetector {
 public:
  static constexpr double kCertainGrowth = 1e4;  // of the norm, for so many steps in a row:
  static constexpr uint64_t kCertainSteps = 16;  // nothing more is waited for
  static constexpr uint64_t kPatience = 1000;    // losses, of which one must have fallen
  static constexpr uint64_t kSuspiciousFlat = 64;
  static constexpr uint32_t kLeastNotFinite = 16;

  struct Verdict {
    Divergence what = Divergence::kNotFinite;
    Step since;        // the first step that showed it
    std::string seen;  // a clause: "the loss is 2.3, but …"
  };

  // The job goes on from parameters that were trained before: that the loss stays is no trouble.
  void Resume() { resumed_ = true; }

  // After each step, in order.
  void OnStep(const StepReport& report);

  // Gradients with NaN or infinity were refused or left out while `step` was the server's step.
  // Does nothing before as many as four of each worker come in a row.
  void OnNotFinite(Step step, uint64_t gradients, uint32_t workers);

  // The trouble, as long as it lasts. Of two, the first; but kDoesNotLearn gives way to others.
  const absl::optional<Verdict>& verdict() const { return verdict_; }

  // Whether the latest steps look as if there will be a verdict because of which `action` ends the
  // job: do not save them over better ones.
  bool Suspects(DivergenceAction action) const;
  // Whether it does because a loss that had fallen is back at the first one. Unlike other
  // suspicions, this one ends after kPatience losses, or steps without any, at the latest.
  bool SuspectsFlat(DivergenceAction action) const;

 private:
  void NoteLoss(const StepReport& report);
  void NoteFlat(const StepReport& report);
  void NoteGrowth(Step step);
  void NoteNotFinite(const NotFiniteRun& run, uint64_t most, absl::string_view what);
  double Growth() const;
  void Judge(Step step);
  void Recover();
  void Say(Divergence what, Step since, std::string seen);

  bool resumed_ = false;
  bool begun_ = false;
  LossTrend trend_;
  NormGrowth growth_;
  BadShare rising_;   // of the losses
  BadShare growing_;  // of the steps
  bool grows_ = false;
  uint64_t certain_ = 0;  // steps in a row of kCertainGrowth
  uint64_t silent_ = 0;   // steps in a row without a loss
  uint64_t flat_ = 0;     // losses in a row that have not fallen
  Step flat_since_;
  NotFiniteRun losses_;     // of steps
  NotFiniteRun gradients_;  // finite ones: steps
  absl::optional<Verdict> verdict_;
};

// What decides the advice to the user.
struct AdviceFacts {
  double learning_rate = 0;  // 0: the workers have their own
  double staleness = 0;      // mean, of the gradients that counted
  bool stale_rules = false;  // a rule for stale gradients is in use
  bool clips = false;        // --clip-norm is given
};

// What a user can do: a clause such as "lower the learning rate, which is 0.03".
std::string AdviceFor(Divergence what, const AdviceFacts& facts);

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_DIVERGENCE_H_
