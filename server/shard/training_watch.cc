#include "server/shard/training_watch.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

WarningKind KindOf(Divergence what) {
  switch (what) {
    case Divergence::kParametersGrow:
      return WarningKind::kParametersGrow;
    case Divergence::kLossRises:
      return WarningKind::kLossRises;
    case Divergence::kDoesNotLearn:
      return WarningKind::kDoesNotLearn;
    case Divergence::kNotFinite:
      break;
  }
  return WarningKind::kNotFinite;
}

absl::string_view NameOf(WarningKind kind) {
  switch (kind) {
    case WarningKind::kDoesNotLearn:
      return "training does not learn";
    case WarningKind::kWorkersLost:
      return "workers are lost";
    case WarningKind::kGradientsDropped:
      return "most gradients are dropped";
    case WarningKind::kNotFinite:
    case WarningKind::kParametersGrow:
    case WarningKind::kLossRises:
      break;
  }
  return "training diverges";
}

absl::string_view NameWhenOver(WarningKind kind) {
  switch (kind) {
    case WarningKind::kWorkersLost:
      return "most workers are present again";
    case WarningKind::kGradientsDropped:
      return "most gradients count again";
    default:
      return "training learns again";
  }
}

}  // namespace

void TrainingWatch::AddGradient(absl::optional<float> loss) {
  ++gradients_;
  if (!loss.has_value()) return;
  ++losses_;
  loss_sum_ += *loss;
}

void TrainingWatch::LeaveOut() {
  gradients_ = losses_ = 0;
  loss_sum_ = 0;
}

void TrainingWatch::OnStep(StepReport report, const AdviceFacts& facts) {
  report.has_gradients = gradients_ > 0;
  if (losses_ > 0) report.loss = loss_sum_ / losses_;
  LeaveOut();
  VLOG(1) << "watched step " << report.step << ": norm " << report.norm_before << " to "
          << report.norm << ", loss "
          << (report.loss.has_value() ? absl::StrCat(*report.loss) : "unknown");
  detector_.OnStep(report);
  NoteVerdict(report.step, facts);
  NoteSuspicion(report.step);
}

void TrainingWatch::OnNotFinite(Step step, uint64_t not_finite, uint32_t workers,
                                const AdviceFacts& facts) {
  const uint64_t more = not_finite - std::exchange(not_finite_, not_finite);
  if (more == 0) return;
  detector_.OnNotFinite(step, more, workers);
  NoteVerdict(step, facts);
}

bool TrainingWatch::Ends() const {
  return detector_.verdict().has_value() && EndsJob(action_, detector_.verdict()->what);
}

void TrainingWatch::NoteSuspicion(Step step) {
  if (!detector_.Suspects(action_)) {
    suspect_since_.reset();
    told_ = false;
  } else if (!suspect_since_.has_value()) {
    suspect_since_ = step;
  }
}

bool TrainingWatch::Withholds(Step step) const {
  if (!suspect_since_.has_value()) return false;
  return detector_.SuspectsFlat(action_) ||
         step.value() - suspect_since_->value() < kLongestWithholding;
}

bool TrainingWatch::TakesCheckpoint(Step step, bool due) {
  checkpoint_due_ = checkpoint_due_ || due;
  if (!checkpoint_due_) return false;
  checkpoint_due_ = Withholds(step);
  if (!checkpoint_due_) return true;
  if (std::exchange(told_, true)) return false;
  news_.push_back(absl::StrCat(
      "step ", step.value(), " gets no checkpoint yet, because training seems to diverge, and ",
      "with --on-divergence=", DivergenceActionName(action_), " a server shall continue from ",
      "better parameters; the next one is saved when it is clear that it does not diverge"));
  return false;
}

void TrainingWatch::OnWorkers(Step step, uint32_t present, uint32_t evicted) {
  most_present_ = std::max(most_present_, present);
  const uint32_t lost = std::min(evicted, most_present_ - present);
  const bool half = lost > 0 && 2 * lost >= most_present_;
  if (!half) return End(WarningKind::kWorkersLost, step);
  if (Lasts(WarningKind::kWorkersLost)) return;
  Begin(WarningKind::kWorkersLost, step,
        absl::StrCat(lost, " of ", most_present_, " workers were evicted and are not back, so the ",
                     "job sees only a part of its data; look for their end in their own logs, and ",
                     "start them again: they join under way"));
}

void TrainingWatch::OnPushes(Step step, const PushCounters& counters, bool bounded) {
  const uint64_t judged = counters.accepted + counters.stale - judged_;
  if (bounded && judged < kJudgedPushes) return;
  const uint64_t dropped = counters.stale - dropped_;
  judged_ += judged;
  dropped_ += dropped;
  if (!bounded || 2 * dropped <= judged) return End(WarningKind::kGradientsDropped, step);
  if (Lasts(WarningKind::kGradientsDropped)) return;
  Begin(WarningKind::kGradientsDropped, step,
        absl::StrCat(dropped, " of the last ", judged, " gradients were dropped because they were ",
                     "older than --max-staleness; raise it, at best to twice the number of ",
                     "workers, or use fewer workers"));
}

void TrainingWatch::NoteVerdict(Step step, const AdviceFacts& facts) {
  const auto& verdict = detector_.verdict();
  absl::optional<WarningKind> now;
  if (verdict.has_value()) now = KindOf(verdict->what);
  if (now == diverges_as_) return;
  const absl::optional<WarningKind> before = std::exchange(diverges_as_, now);
  if (!now.has_value()) return End(*before, step);
  if (before.has_value()) Close(*before, step);  // worse has come in its place
  Begin(*now, verdict->since, absl::StrCat(verdict->seen, "; ", AdviceFor(verdict->what, facts)));
  divergence_ = warnings_.back().text;
}

void TrainingWatch::Begin(WarningKind kind, Step since, const std::string& text) {
  const auto same = [kind](const TrainingWarning& warning) { return warning.kind == kind; };
  warnings_.erase(std::remove_if(warnings_.begin(), warnings_.end(), same), warnings_.end());
  warnings_.push_back({kind, since, absl::nullopt,
                       absl::StrCat(NameOf(kind), " since step ", since.value(), ": ", text)});
  news_.push_back(warnings_.back().text);
}

void TrainingWatch::End(WarningKind kind, Step over) {
  if (!Close(kind, over)) return;
  news_.push_back(absl::StrCat(NameWhenOver(kind), " since step ", over.value()));
}

// Returns whether there was such a warning that lasted.
bool TrainingWatch::Close(WarningKind kind, Step over) {
  for (TrainingWarning& warning : warnings_) {
    if (warning.kind != kind || warning.over.has_value()) continue;
    warning.over = over;
    return true;
  }
  return false;
}

bool TrainingWatch::Lasts(WarningKind kind) const {
  return std::any_of(warnings_.begin(), warnings_.end(), [kind](const TrainingWarning& warning) {
    return warning.kind == kind && !warning.over.has_value();
  });
}

}  // namespace sluice
