#include "server/shard/training_watch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
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
    case WarningKind::kWentBack:
      return "training has gone back";
    case WarningKind::kWorkersLate:
      return "workers are missing";
    case WarningKind::kTooFewWorkers:
      return "the quorum is too large";
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
    case WarningKind::kWorkersLate:
      return "all workers have joined";
    case WarningKind::kTooFewWorkers:
      return "there are as many workers as the quorum";
    default:
      return "training learns again";
  }
}

}  // namespace

void Trained::Add(uint64_t samples_of_step, absl::optional<double> loss) {
  samples += samples_of_step;
  if (!loss.has_value() || !std::isfinite(*loss)) return;
  losses.push_back(*loss);
  if (losses.size() > kRecent) losses.pop_front();
}

absl::optional<double> Trained::loss() const {
  if (losses.empty()) return absl::nullopt;
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

// ---- Gradients and steps ----

void TrainingWatch::AddGradient(SessionId worker, absl::optional<float> loss, uint32_t samples) {
  under_way_.workers.push_back(worker);
  under_way_.samples += samples;
  if (!loss.has_value()) return;
  ++under_way_.losses;
  if (!std::isfinite(*loss)) return;
  ++under_way_.finite_losses;
  under_way_.loss_sum += *loss;
}

void TrainingWatch::TakeGradients(Step step, bool finite, uint32_t workers) {
  for (const SessionId worker : under_way_.workers) {
    detector_.OnGradient(step, worker, finite, workers);
  }
  under_way_.workers.clear();  // and keeps its memory for the next step
  under_way_.losses = under_way_.finite_losses = 0;
  under_way_.loss_sum = 0;
  under_way_.samples = 0;
}

StepReport TrainingWatch::OnStep(StepReport report, uint32_t workers, AdviceSource facts) {
  const double gradients = static_cast<double>(under_way_.workers.size());
  report.rounds = std::min(gradients / std::max(workers, 1u), 1.0);
  if (under_way_.losses > 0) {
    report.loss = under_way_.finite_losses > 0 ? under_way_.loss_sum / under_way_.finite_losses
                                               : std::numeric_limits<double>::quiet_NaN();
  }
  trained_.Add(under_way_.samples, report.loss);
  TakeGradients(report.step, true, workers);
  detector_.OnStep(report);
  NoteVerdict(report.step, facts);
  return report;
}

void TrainingWatch::LeaveOut(Step step, uint32_t workers, AdviceSource facts) {
  TakeGradients(step, false, workers);
  NoteVerdict(step, facts);
}

void TrainingWatch::OnNotFinite(Step step, SessionId worker, uint32_t workers, AdviceSource facts) {
  detector_.OnGradient(step, worker, false, workers);
  NoteVerdict(step, facts);
}

bool TrainingWatch::Ends() const {
  return detector_.verdict().has_value() && EndsJob(action_, detector_.verdict()->what);
}

bool TrainingWatch::GoesBack() const {
  return detector_.verdict().has_value() && sluice::GoesBack(action_, detector_.verdict()->what);
}

void TrainingWatch::NoteVerdict(Step step, AdviceSource facts) {
  const auto& verdict = detector_.verdict();
  absl::optional<WarningKind> now;
  if (verdict.has_value()) now = KindOf(verdict->what);
  if (now == diverges_as_) return;
  const absl::optional<WarningKind> before = std::exchange(diverges_as_, now);
  if (!now.has_value()) return End(*before, step);
  if (before.has_value()) Close(*before, step);  // worse has come in its place
  Begin(*now, verdict->since, absl::StrCat(verdict->seen, "; ", AdviceFor(verdict->what, facts())));
  divergence_ = warnings_.back().text;
}

// ---- Workers and pushes ----

void TrainingWatch::OnWorkers(Step step, const WorkerCounts& now) {
  trained_.workers = std::max(trained_.workers, now.connected);
  const bool more = now.evicted > std::exchange(evicted_, now.evicted);
  const uint32_t lost =
      std::min(now.evicted, trained_.workers - std::min(trained_.workers, now.open));
  if (lost == 0 || 2 * lost < trained_.workers) return End(WarningKind::kWorkersLost, step);
  if (!more || Lasts(WarningKind::kWorkersLost)) return;
  Begin(WarningKind::kWorkersLost, step,
        absl::StrCat(lost, " of ", trained_.workers,
                     " workers were evicted and are not back, so the job sees ",
                     "only a part of its data; look for their end in their own logs, and start ",
                     "them again: they can join while training runs"));
}

void TrainingWatch::OnLeave() {
  trained_.workers -= std::min(trained_.workers, 1u);
  ++done_;
}

void TrainingWatch::OnLate(Step step, uint32_t late, uint32_t expected) {
  if (late == 0) return End(WarningKind::kWorkersLate, step);
  if (Lasts(WarningKind::kWorkersLate)) return;
  Begin(WarningKind::kWorkersLate, step,
        absl::StrCat(late, " of ", expected, " workers were not there when --start-timeout was ",
                     "over, so training goes on without their part of the data; look into their ",
                     "own logs: they can join while training runs"));
}

void TrainingWatch::OnQuorum(Step step, uint32_t quorum, uint32_t workers) {
  if (workers + done_ >= quorum) return End(WarningKind::kTooFewWorkers, step);
  if (workers == 0 || Lasts(WarningKind::kTooFewWorkers)) return;
  Begin(WarningKind::kTooFewWorkers, step,
        absl::StrCat("it is ", quorum, ", and the job has ", workers, " workers, so each step ",
                     "waits for all of them, as in sync; lower --quorum (Admin.SetPolicy while ",
                     "the job runs), or start more workers: they can join while training runs"));
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

// ---- Warnings ----

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
