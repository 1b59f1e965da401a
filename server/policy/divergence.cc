#include "server/policy/divergence.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice {
namespace {

constexpr uint64_t kNotFinitePerWorker = 4;

std::string RateOf(const AdviceFacts& facts) {
  return facts.learning_rate > 0
             ? absl::StrFormat("the learning rate, which is %g", facts.learning_rate)
             : "the learning rate of the workers";
}

}  // namespace

absl::string_view DivergenceActionName(DivergenceAction action) {
  switch (action) {
    case DivergenceAction::kStop:
      return "stop";
    case DivergenceAction::kStopIfFlat:
      return "stop-if-flat";
    case DivergenceAction::kWarn:
      break;
  }
  return "warn";
}

bool EndsJob(DivergenceAction action, Divergence what) {
  if (what == Divergence::kDoesNotLearn) return action == DivergenceAction::kStopIfFlat;
  return action != DivergenceAction::kWarn;
}

// ---- Steps ----

void DivergenceDetector::OnStep(const StepReport& report) {
  if (!begun_) growth_.Begin(report.norm_before);
  begun_ = true;
  growth_.Add(report.norm);
  if (report.has_gradients) gradients_.AddFinite();
  silent_ = report.loss.has_value() ? 0 : silent_ + 1;
  if (report.loss.has_value()) NoteLoss(report);
  NoteGrowth(report.step);
  Judge(report.step);
  Recover();
}

void DivergenceDetector::NoteLoss(const StepReport& report) {
  if (!std::isfinite(*report.loss)) {
    losses_.Add(report.step, 1);
    NoteNotFinite(losses_, kLeastNotFinite, "losses");
    return;
  }
  losses_.AddFinite();
  trend_.Add(*report.loss);
  rising_.Add(report.step, trend_.rises());
  NoteFlat(report);
}

void DivergenceDetector::NoteFlat(const StepReport& report) {
  const bool flat = trend_.begun() && !resumed_ && !report.warms_up && !trend_.has_fallen();
  flat_ = flat ? flat_ + 1 : 0;
  if (flat_ <= 1) flat_since_ = report.step;
}

// Parameters that begin very small may grow by much, while the loss falls. In the first steps they
// may anyhow, unless the loss rises with them.
void DivergenceDetector::NoteGrowth(Step step) {
  // Where the loss stays, half of the losses are below the very first one.
  const bool falls = trend_.known() ? trend_.has_fallen() : trend_.improved();
  const bool fast = growth_.growth() > NormGrowth::kMost && !falls;
  grows_ = fast || (growth_.early_growth() > NormGrowth::kMost && trend_.worsened());
  growing_.Add(step, grows_);
  certain_ = grows_ && Growth() > kCertainGrowth ? certain_ + 1 : 0;
  if (certain_ >= kCertainSteps) growing_.Confirm();
}

double DivergenceDetector::Growth() const {
  return growth_.growth() > NormGrowth::kMost ? growth_.growth() : growth_.early_growth();
}

void DivergenceDetector::Judge(Step step) {
  if (grows_ && growing_.trouble()) {
    Say(Divergence::kParametersGrow, growing_.since(),
        absl::StrFormat("the parameters have become %.3g times as large", Growth()));
  } else if (rising_.trouble()) {
    Say(Divergence::kLossRises, rising_.since(),
        absl::StrFormat("the loss is %.4g, but was %s%.4g in the first steps", trend_.latest(),
                        trend_.had_fallen() ? absl::StrFormat("down to %.4g, and ", trend_.best())
                                            : std::string(),
                        trend_.first()));
  } else if (flat_ >= kPatience) {
    const uint64_t steps = step.value() - flat_since_.value() + 1;
    Say(Divergence::kDoesNotLearn, flat_since_,
        absl::StrFormat("the loss has stayed at that of the first steps for %d steps: it was %.4g "
                        "and is %.4g",
                        steps, trend_.first(), trend_.smoothed()));
  }
}

void DivergenceDetector::Recover() {
  if (!verdict_.has_value()) return;
  bool good = false;
  switch (verdict_->what) {
    case Divergence::kNotFinite:
      good = losses_.over() && gradients_.over();
      break;
    case Divergence::kDoesNotLearn:
      good = trend_.has_fallen();
      break;
    case Divergence::kParametersGrow:
      good = growing_.over();
      break;
    case Divergence::kLossRises:
      good = rising_.over();
      break;
  }
  if (good) verdict_.reset();
}

bool DivergenceDetector::Suspects(DivergenceAction action) const {
  if (action == DivergenceAction::kWarn) return false;
  return grows_ || growing_.suspicious() || rising_.suspicious() || SuspectsFlat(action);
}

bool DivergenceDetector::SuspectsFlat(DivergenceAction action) const {
  return EndsJob(action, Divergence::kDoesNotLearn) && trend_.had_fallen() &&
         flat_ > kSuspiciousFlat && silent_ < kPatience;
}

// ---- Gradients and losses that are not finite ----

void DivergenceDetector::OnNotFinite(Step step, uint64_t gradients, uint32_t workers) {
  gradients_.Add(step, gradients);
  NoteNotFinite(gradients_, std::max<uint64_t>(kLeastNotFinite, kNotFinitePerWorker * workers),
                "gradients");
}

void DivergenceDetector::NoteNotFinite(const NotFiniteRun& run, uint64_t most,
                                       absl::string_view what) {
  if (run.count() < most) return;
  Say(Divergence::kNotFinite, run.since(),
      absl::StrCat("the last ", run.count(), " ", what, " had NaN or infinity"));
}

void DivergenceDetector::Say(Divergence what, Step since, std::string seen) {
  if (verdict_.has_value() && verdict_->what != Divergence::kDoesNotLearn) return;
  if (verdict_.has_value() && what == Divergence::kDoesNotLearn) return;
  verdict_ = Verdict{what, since, std::move(seen)};
}

// ---- Advice ----

std::string AdviceFor(Divergence what, const AdviceFacts& facts) {
  std::string advice = absl::StrCat(
      what == Divergence::kDoesNotLearn ? "look at data and labels, and change " : "lower ",
      RateOf(facts));
  if (facts.staleness >= 1 && !facts.stale_rules) {
    absl::StrAppendFormat(&advice,
                          "; or moderate gradients, which are %.1f steps old on average, with "
                          "--staleness-rules=auto",
                          facts.staleness);
  } else if (what != Divergence::kDoesNotLearn && !facts.clips) {
    absl::StrAppend(&advice, "; or bound gradients with --clip-norm");
  }
  return advice;
}

}  // namespace sluice
