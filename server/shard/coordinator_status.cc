// The part of Coordinator that reports its status, makes checkpoints, and recovers.

#include <algorithm>

#include "common/base/error.h"
#include "server/shard/coordinator.h"

namespace sluice {

// ---- Status ----

Phase Coordinator::phase() const {
  if (draining()) return Phase::kDraining;
  if (roster_.finished()) return Phase::kFinished;
  return roster_.started() && initialized() ? Phase::kTraining : Phase::kWaitingForWorkers;
}

// The current step's learning rate, or 0 before the first worker joined.
double Coordinator::LearningRate() const {
  if (roster_.layout() == nullptr) return 0;
  return settings_.LearningRate(roster_.optimizer(), step_.number());
}

ShardStatus Coordinator::Describe() const {
  ShardStatus state;
  roster_.Describe(&state);
  state.end_is_saved = end_ == End::kSaved && roster_.finished();
  state.end_is_complete = state.end_is_saved && !end_was_observed_;
  state.job_id = options_.job_id;
  state.incarnation = options_.incarnation;
  state.phase = phase();
  state.step = step_.number();
  state.consistency = settings_.consistency();
  state.staleness_rules = rules_;
  state.expected_workers = options_.expected_workers;
  state.schedule = settings_.schedule();
  state.learning_rate = LearningRate();
  state.base_learning_rate =
      roster_.layout() == nullptr ? 0 : settings_.BaseLearningRate(roster_.optimizer());
  state.current = step_.Describe(admission_.in_flight());
  state.waiting_pulls = pulls_.size();
  state.counters = admission_.gate().counters();
  state.staleness = admission_.gate().staleness();
  state.traffic.bytes_received = bytes_received_;
  state.traffic.bytes_sent = pulls_.bytes_answered();
  if (admission_.in_flight() != nullptr) {
    state.in_flight = admission_.in_flight()->Describe(state.elements * sizeof(float));
  }
  state.measured = measured_;
  state.journal_stopped = !journal_error_.ok();
  state.created = created_;
  state.uptime = clock_.Now() - created_;
  state.now = running_.Now();
  state.times = times_;
  state.lost_steps = lost_steps_;
  watch_.Describe(&state);
  state.diverged = ReasonOf(serving_) == Reason::kDiverged;
  return state;
}

// ---- Checkpoints and recovery ----

ShardCheckpoint Coordinator::Checkpoint() const {
  ShardCheckpoint checkpoint;
  checkpoint.job_id = options_.job_id;
  checkpoint.step = step_.number();
  checkpoint.incarnations = incarnations_;
  checkpoint.layout = roster_.layout();
  checkpoint.optimizer = roster_.optimizer();
  checkpoint.consistency = settings_.consistency();
  checkpoint.own_consistency = options_.consistency;
  checkpoint.learning_rate = settings_.learning_rate();
  checkpoint.schedule = settings_.schedule();
  checkpoint.forgot_workers = roster_.sessions().forgot_workers();
  checkpoint.launched_workers = roster_.launched_workers();
  checkpoint.earlier_launches = roster_.earlier_launches();
  for (const SessionRecord& record : roster_.sessions().Records()) {
    if (record.role == SessionRole::kWorker) {
      checkpoint.workers.push_back(record.Before(checkpoint.step));
    } else if (record.MayBeRepeated()) {
      checkpoint.forgot_workers = true;
    }
  }
  checkpoint.ended = ends();
  checkpoint.finished =
      finished() && (roster_.ended_before() || roster_.sessions().AnyWorkerLeft());
  if (checkpoint.finished) checkpoint.observers = roster_.sessions().Observers();
  watch_.Describe(&checkpoint);
  return checkpoint;
}

void Coordinator::Restore(const ShardCheckpoint& checkpoint) {
  watch_.Restore(checkpoint);
  incarnations_ = checkpoint.incarnations;
  own_consistency_ = checkpoint.own_consistency;
  RestoreSettings(checkpoint.consistency, checkpoint.learning_rate);
  step_.Restore(checkpoint.step);
  roster_.Restore(checkpoint, running_.Now());
  TakePolicy();
  initialized_ = true;
  times_.initialized = running_.Now();
}

// The operator's changes stay in force, unless the server was started with another consistency.
void Coordinator::RestoreSettings(const Consistency& consistency,
                                  absl::optional<double> learning_rate) {
  const bool same = options_.consistency == own_consistency_;
  settings_.Restore(same ? consistency : options_.consistency, learning_rate);
}

void Coordinator::Replay(const StepRecord& record) {
  if (record.incarnation != incarnations_.current()) {
    incarnations_ = IncarnationHistory(record.incarnation, incarnations_, step_.number());
  }
  RestoreSettings(record.terms.consistency, record.learning_rate);
  TakePolicy();
  step_.Restore(record.step);
  if (record.forgot_workers) roster_.sessions().ForgetWorkers();
  for (const SessionRecord& worker : record.contributors) {
    roster_.sessions().RestoreWorker(worker, record.step, running_.Now());
  }
  roster_.ResumeTraining();
}

void Coordinator::BeginIncarnation(const IncarnationBegins& incarnations) {
  roster_.BeginLaunch();
  IncarnationHistory earlier = incarnations_;
  // Incarnations that left no steps: each began on this history, or on later steps that are lost.
  Step begin = step_.number();
  for (auto it = incarnations.rbegin(); it != incarnations.rend(); ++it) {
    begin = std::min(begin, it->second);
    const bool known =
        it->first == incarnations_.current() || incarnations_.ancestors().count(it->first) > 0;
    if (!known) earlier.AddAncestor(it->first, begin);
  }
  incarnations_ = IncarnationHistory(options_.incarnation, earlier, step_.number());
}

StepRecord Coordinator::MakeStepRecord(const NextAction& action) const {
  StepRecord record;
  record.step = step_.number().Next();
  record.incarnation = options_.incarnation;
  record.terms = action.terms;
  record.learning_rate = settings_.learning_rate();
  record.forgot_workers = roster_.sessions().forgot_workers();
  record.contributors = roster_.sessions().Parts();
  return record;
}

}  // namespace sluice
