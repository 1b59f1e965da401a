#include "server/shard/shard_watch.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/protocol/optimizer_options.h"
#include "server/admission/draining.h"
#include "server/policy/staleness_rules.h"
#include "server/shard/job_parts.h"

namespace sluice {

ShardWatch::ShardWatch(JobParts& job)
    : job_(job), watch_(job.options.guards.on_divergence, job.options.warnings) {}

void ShardWatch::Restore(const ShardCheckpoint& checkpoint) {
  watch_.Restore(checkpoint.losses, checkpoint.suspect_since);
}

AdviceFacts ShardWatch::FactsForAdvice() const {
  const OptimizerConfig& optimizer = *job_.roster.model().optimizer;
  Consistency automatic = job_.settings.consistency();
  SetStalenessRules(RuleChoice::kAuto, &automatic);
  AdviceFacts facts;
  const StepOptions& latest = job_.step.contributions().latest_options();
  facts.learning_rate = job_.settings.LearningRate(latest.changed, job_.step.number());
  facts.staleness = job_.admission.gate().staleness().mean();
  facts.auto_helps = !job_.settings.rules().any() && ChooseRules(automatic, optimizer).any();
  facts.clips = job_.options.guards.clip_norm.has_value() || latest.clip_norm.has_value();
  return facts;
}

uint32_t ShardWatch::CountWorkers() const { return job_.roster.sessions().census().members(); }

absl::Status ShardWatch::OnWorkers(Completions* completions) {
  const Step step = job_.step.number();
  const Roster& roster = job_.roster;
  const WorkerCounts now = roster.sessions().census().workers();
  const uint32_t expected = job_.options.expected_workers;
  watch_.OnWorkers(step, now);
  watch_.OnLate(step, roster.CountLate(), expected);
  const Consistency& rules = job_.settings.consistency();
  watch_.OnQuorum(step, rules.mode == ConsistencyMode::kBackup ? rules.quorum : 0,
                  roster.started() ? now.open : std::max(now.open, expected));
  return Tell(completions);
}

void ShardWatch::OnLeave(const SessionRecord& worker, Completions* completions) {
  if (worker.presence == Presence::kLeft) return watch_.OnLeave();
  completions->Add([step = job_.step.number(), text = worker.DescribeFailure()] {
    LOG(WARNING) << "at step " << step << " a worker was lost: " << text;
  });
}

absl::Status ShardWatch::OnArrivals(Completions* completions) {
  const std::vector<SessionId> not_finite = job_.admission.TakeNotFinite();
  if (not_finite.empty()) return absl::OkStatus();
  const uint32_t workers = CountWorkers();
  for (const SessionId worker : not_finite) {
    watch_.OnNotFinite(job_.step.number(), worker, workers, [this] { return FactsForAdvice(); });
  }
  return Tell(completions);
}

void ShardWatch::AddGradient(const PushHeader& push) {
  watch_.AddGradient(push.session, push.loss, push.samples);
}

// What it may say is told with the step, which follows.
void ShardWatch::LeaveOut() {
  watch_.LeaveOut(job_.step.number(), CountWorkers(), [this] { return FactsForAdvice(); });
}

absl::Status ShardWatch::OnStep(const StepNorms& norms, Completions* completions) {
  StepReport report;
  report.step = job_.step.number();
  const OptimizerConfig& optimizer = *job_.roster.model().optimizer;
  if (!PublishesGradients(optimizer.options)) {  // gradients may grow
    report.norm_before = norms.before;
    report.norm = norms.after;
  }
  report.warms_up = report.step.value() <= job_.settings.schedule().warmup_steps;
  report = watch_.OnStep(report, CountWorkers(), [this] { return FactsForAdvice(); });
  if (VLOG_IS_ON(1)) {
    completions->Add([report] {
      VLOG(1) << "watched step " << report.step << ": norm " << report.norm_before << " to "
              << report.norm << ", loss "
              << (report.loss.has_value() ? absl::StrCat(*report.loss) : "unknown");
    });
  }
  watch_.OnPushes(report.step, job_.admission.gate().counters(),
                  job_.settings.consistency().mode == ConsistencyMode::kBounded);
  return Tell(completions);
}

absl::Status ShardWatch::Tell(Completions* completions) {
  for (std::string& news : watch_.TakeNews()) {
    completions->Add([news = std::move(news)] { LOG(WARNING) << news; });
  }
  return watch_.Ends() ? DivergedError(watch_.divergence()) : absl::OkStatus();
}

void ShardWatch::Describe(ShardStatus* status) const {
  status->warnings = watch_.warnings();
  status->suspect_since = watch_.suspect_since();
  status->goes_back = watch_.GoesBack();
  status->most_workers = watch_.trained().workers;
  status->samples = watch_.trained().samples;
  status->loss = watch_.trained().loss();
}

void ShardWatch::Describe(ShardCheckpoint* checkpoint) const {
  checkpoint->losses = watch_.losses();
  checkpoint->suspect_since = watch_.suspect_since();
}

}  // namespace sluice
