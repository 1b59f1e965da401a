// The part of Coordinator that watches whether the job learns, and ends it if it shall.

#include <glog/logging.h>

#include <string>
#include <utility>

#include "server/admission/draining.h"
#include "server/shard/coordinator.h"

namespace sluice {

AdviceFacts Coordinator::FactsForAdvice() const {
  AdviceFacts facts;
  facts.learning_rate = LearningRate();
  facts.staleness = admission_.gate().staleness().mean();
  facts.stale_rules = rules_.any();
  facts.clips = options_.guards.clip_norm.has_value();
  return facts;
}

void Coordinator::WatchWorkers(Completions* completions) {
  watch_.OnWorkers(step_.number(), roster_.sessions().CountPresent(),
                   roster_.sessions().CountEvicted());
  EndWatch(completions);
}

// Gradients that are not finite may make no step.
void Coordinator::WatchGradients(Completions* completions) {
  if (admission_.not_finite() == watch_.not_finite()) return;
  watch_.OnNotFinite(step_.number(), admission_.not_finite(),
                     roster_.sessions().CountMembers(step_.number()), FactsForAdvice());
  EndWatch(completions);
}

void Coordinator::WatchStep(const StepNorms& norms, Completions* completions) {
  StepReport report;
  report.step = step_.number();
  report.norm_before = norms.before;
  report.norm = norms.after;
  report.warms_up = report.step.value() <= settings_.schedule().warmup_steps;
  watch_.OnStep(report, FactsForAdvice());
  watch_.OnPushes(report.step, admission_.gate().counters(),
                  settings_.consistency().mode == ConsistencyMode::kBounded);
  EndWatch(completions);
}

void Coordinator::TellNews(Completions* completions) {
  for (std::string& news : watch_.TakeNews()) {
    completions->Add([news = std::move(news)] { LOG(WARNING) << news; });
  }
}

// Tells what the watch has seen, and acts on it.
void Coordinator::EndWatch(Completions* completions) {
  TellNews(completions);
  if (!watch_.Ends()) return;
  GoDown(DivergedError(watch_.divergence()), completions);
}

bool Coordinator::TakesCheckpoint(bool due, Completions* completions) {
  const bool takes = watch_.TakesCheckpoint(step_.number(), due);
  TellNews(completions);
  return takes;
}

}  // namespace sluice
