#include "server/policy/divergence.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice {
namespace {

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
    case DivergenceAction::kRestore:
      return "restore";
    case DivergenceAction::kWarn:
      break;
  }
  return "warn";
}

bool EndsJob(DivergenceAction action, Divergence what) {
  if (action == DivergenceAction::kStopIfFlat) return true;
  return action == DivergenceAction::kStop && what != Divergence::kDoesNotLearn;
}

bool GoesBack(DivergenceAction action, Divergence what) {
  return action == DivergenceAction::kRestore && what != Divergence::kDoesNotLearn;
}

void DivergenceDetector::Restore(const absl::optional<LossMemory>& losses,
                                 absl::optional<Step> suspect_since) {
  if (losses.has_value()) trend_.Restore(*losses);
  trained_before_ = losses.has_value() && losses->trained;
  suspected_ = suspect_since;
}

absl::optional<LossMemory> DivergenceDetector::losses() const {
  absl::optional<LossMemory> losses = trend_.memory();
  if (losses.has_value()) losses->trained = trained_before_;
  return losses;
}

// ---- Gradients ----

void DivergenceDetector::OnGradient(Step step, SessionId worker, bool finite, uint32_t workers) {
  const bool repeats = !finite && worker == latest_bad_ && workers > 1;
  latest_bad_ = finite ? SessionId() : worker;
  if (repeats) return;
  gradients_.Add(step, !finite, std::max(kFewest, kGradientsOfEach * workers));
  Judge(step);
}

// ---- Steps ----

void DivergenceDetector::OnStep(const StepReport& report) {
  if (!begun_) {
    growth_.Begin(report.norm_before);
    if (!trend_.known()) trained_before_ = static_cast<double>(report.step.value()) > kPatience;
    begun_ = true;
  }
  growth_.Add(report.norm);
  rounds_ += report.rounds;
  if (report.loss.has_value()) NoteLoss(report);
  NoteGrowth(report.step);
  NoteFine();
  Judge(report.step);
}

void DivergenceDetector::NoteLoss(const StepReport& report) {
  const double rounds = std::min(std::exchange(rounds_, 0), 1.0);
  const bool finite = std::isfinite(*report.loss);
  losses_.Add(report.step, !finite, kFewest);
  if (!finite) return;
  trend_.Add(*report.loss);
  rising_.Add(report.step, trend_.rises());
  NoteFlat(report, rounds);
}

void DivergenceDetector::NoteFlat(const StepReport& report, double rounds) {
  const bool flat = trend_.begun() && !trained_before_ && !report.warms_up && !trend_.has_fallen();
  if (!flat) flat_ = 0;
  if (flat && flat_ == 0) flat_since_ = report.step;
  if (flat) flat_ += rounds;
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

void DivergenceDetector::NoteFine() {
  fine_ = FirstBad().has_value() ? 0 : fine_ + 1;
  if (fine_ >= kFineSteps) suspected_.reset();
}

double DivergenceDetector::Growth() const {
  return growth_.growth() > NormGrowth::kMost ? growth_.growth() : growth_.early_growth();
}

// ---- Verdicts ----

void DivergenceDetector::Judge(Step step) {
  if (verdict_.has_value() && IsOver(verdict_->what)) verdict_.reset();
  const absl::optional<Divergence> found = Find();
  if (!found.has_value()) return;
  const bool first = !verdict_.has_value() || verdict_->what == Divergence::kDoesNotLearn;
  if (!first || (verdict_.has_value() && *found == verdict_->what)) return;
  verdict_ = Verdict{*found, SinceOf(*found), Seen(*found, step)};
}

absl::optional<Divergence> DivergenceDetector::Find() const {
  if (gradients_.trouble() || losses_.trouble()) return Divergence::kNotFinite;
  if (grows_ && growing_.trouble()) return Divergence::kParametersGrow;
  if (rising_.trouble()) return Divergence::kLossRises;
  if (flat_ >= kPatience) return Divergence::kDoesNotLearn;
  return absl::nullopt;
}

bool DivergenceDetector::IsOver(Divergence what) const {
  switch (what) {
    case Divergence::kParametersGrow:
      return growing_.over();
    case Divergence::kLossRises:
      return rising_.over();
    case Divergence::kDoesNotLearn:
      return trend_.has_fallen();
    case Divergence::kNotFinite:
      break;
  }
  return losses_.over() && gradients_.over();
}

// In trouble, since() is present.
Step DivergenceDetector::SinceOf(Divergence what) const {
  switch (what) {
    case Divergence::kParametersGrow:
      return *growing_.since();
    case Divergence::kLossRises:
      return *rising_.since();
    case Divergence::kDoesNotLearn:
      return flat_since_;
    case Divergence::kNotFinite:
      break;
  }
  return *NotFinite().since();
}

absl::optional<Step> DivergenceDetector::FirstBad() const {
  absl::optional<Step> first;
  for (const BadShare* const share : {&rising_, &growing_, &losses_, &gradients_}) {
    const absl::optional<Step> since = share->since();
    if (since.has_value()) first = std::min(first.value_or(*since), *since);
  }
  return first;
}

absl::optional<Step> DivergenceDetector::suspect_since() const {
  absl::optional<Step> first = FirstBad();
  if (suspected_.has_value()) first = std::min(first.value_or(*suspected_), *suspected_);
  // A loss that never fell leaves nothing better to keep.
  if (flat_ > 0 && trend_.had_fallen()) first = std::min(first.value_or(flat_since_), flat_since_);
  return first;
}

std::string DivergenceDetector::Seen(Divergence what, Step step) const {
  switch (what) {
    case Divergence::kParametersGrow:
      return absl::StrFormat("the parameters have become %.3g times as large", Growth());
    case Divergence::kLossRises:
      return absl::StrFormat(
          "the loss is %.4g, but was %s%.4g in the first steps", trend_.latest(),
          trend_.had_fallen() ? absl::StrFormat("down to %.4g, and ", trend_.best()) : "",
          trend_.first());
    case Divergence::kDoesNotLearn:
      return absl::StrFormat(
          "the loss has stayed at that of the first steps for %d steps: it was %.4g and is %.4g",
          step.value() - flat_since_.value() + 1, trend_.first(), trend_.smoothed());
    case Divergence::kNotFinite:
      break;
  }
  return absl::StrFormat("%.0f %% of the latest %s had NaN or infinity", 100 * NotFinite().share(),
                         gradients_.trouble() ? "gradients" : "losses");
}

// ---- Advice ----

std::string AdviceFor(Divergence what, const AdviceFacts& facts) {
  std::string advice = absl::StrCat(
      what == Divergence::kDoesNotLearn ? "look at data and labels, and change " : "lower ",
      RateOf(facts));
  if (facts.staleness >= 1 && facts.auto_helps) {
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
