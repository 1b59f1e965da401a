#include "server/shard/job_history.h"

#include <algorithm>

#include "server/membership/session_queries.h"
#include "server/shard/job_parts.h"

namespace sluice {

JobHistory::JobHistory(JobParts& job) : job_(job), incarnations_(job.options.incarnation) {}

ShardCheckpoint JobHistory::Checkpoint() const {
  ShardCheckpoint checkpoint;
  checkpoint.job_id = job_.options.job_id;
  checkpoint.step = job_.step.number();
  checkpoint.incarnations = incarnations_;
  checkpoint.layout = job_.roster.model().layout;
  checkpoint.optimizer = *job_.roster.model().optimizer;
  checkpoint.consistency = job_.settings.consistency();
  checkpoint.own_consistency = job_.options.consistency;
  checkpoint.learning_rate = job_.settings.learning_rate();
  checkpoint.changed = job_.step.contributions().latest_options().changed;
  checkpoint.schedule = job_.settings.schedule();
  checkpoint.ended = job_.lifecycle.ends();
  checkpoint.finished =
      job_.lifecycle.finished() &&
      (job_.roster.ended_before() || AnyWorkerLeft(job_.roster.sessions().records()));
  checkpoint.forgot_workers = job_.roster.sessions().forgot_workers();
  checkpoint.launched_workers = job_.roster.launches().workers;
  checkpoint.earlier_launches = job_.roster.launches().earlier;
  for (const auto& [name, record] : job_.roster.sessions().records()) {
    if (record.role == SessionRole::kWorker) {
      checkpoint.workers.push_back(record.Before(checkpoint.step));
    } else if (record.MayBeRepeated()) {
      checkpoint.forgot_workers = true;
    }
    const bool observes = record.role == SessionRole::kObserver && record.alive();
    if (checkpoint.finished && observes) checkpoint.observers.push_back(name);
  }
  job_.watch.Describe(&checkpoint);
  return checkpoint;
}

void JobHistory::Restore(const ShardCheckpoint& checkpoint) {
  job_.watch.Restore(checkpoint);
  incarnations_ = checkpoint.incarnations;
  job_.settings.Restore(checkpoint.consistency, checkpoint.own_consistency,
                        checkpoint.learning_rate);
  job_.step.Restore(checkpoint.step);
  job_.step.contributions().RestoreLatest(checkpoint.changed);
  job_.roster.Restore(checkpoint, job_.clock.Now());
  job_.settings.SetOptimizer(job_.roster.model().optimizer);
  job_.admission.LimitInFlight();
  job_.lifecycle.Initialize();
}

void JobHistory::Replay(const StepRecord& record) {
  if (record.incarnation != incarnations_.current()) {
    incarnations_ = IncarnationHistory(record.incarnation, incarnations_, job_.step.number());
  }
  job_.settings.Replay(record.terms.consistency, record.learning_rate);
  job_.admission.LimitInFlight();
  job_.step.Restore(record.step);
  job_.step.contributions().RestoreLatest(record.terms.changed);
  job_.roster.sessions().Restore(record.contributors, record.forgot_workers, record.step,
                                 job_.clock.Now());
  job_.roster.ResumeTraining();
}

void JobHistory::BeginIncarnation(const IncarnationBegins& incarnations) {
  job_.roster.BeginLaunch();
  IncarnationHistory earlier = incarnations_;
  // Incarnations that left no steps: each began on this history, or on later steps that are lost.
  Step begin = job_.step.number();
  for (auto it = incarnations.rbegin(); it != incarnations.rend(); ++it) {
    begin = std::min(begin, it->second);
    const bool known =
        it->first == incarnations_.current() || incarnations_.ancestors().count(it->first) > 0;
    if (!known) earlier.AddAncestor(it->first, begin);
  }
  incarnations_ = IncarnationHistory(job_.options.incarnation, earlier, job_.step.number());
}

void JobHistory::SetLostSteps(uint64_t steps) {
  lost_steps_ = steps;
  if (steps > 0) job_.roster.NoteLostSteps();
}

StepRecord JobHistory::MakeStepRecord(const StepTerms& terms) const {
  StepRecord record;
  record.step = job_.step.number().Next();
  record.incarnation = job_.options.incarnation;
  record.terms = terms;
  record.learning_rate = job_.settings.learning_rate();
  record.forgot_workers = job_.roster.sessions().forgot_workers();
  record.contributors = PartsOfStep(job_.roster.sessions().census());
  return record;
}

}  // namespace sluice
