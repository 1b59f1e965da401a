// What a Coordinator tells about itself: to people, and to its next life.

#include <algorithm>

#include "common/tensor/vector_copy.h"
#include "server/shard/coordinator.h"

namespace sluice {

// ---- To people ----

Phase Coordinator::phase() const {
  if (draining_) return Phase::kDraining;
  if (roster_.finished()) return Phase::kFinished;
  return roster_.started() && initialized() ? Phase::kTraining : Phase::kWaitingForWorkers;
}

// Of the current step; 0 before there is an optimizer.
double Coordinator::LearningRate() const {
  if (roster_.layout() == nullptr) return 0;
  return terms_.LearningRate(roster_.optimizer(), step_.number());
}

ShardState Coordinator::Describe() const {
  ShardState state;
  roster_.Describe(&state);
  state.job_id = options_.job_id;
  state.incarnation = options_.incarnation;
  state.phase = phase();
  state.step = step_.number();
  state.consistency = terms_.consistency();
  state.schedule = terms_.schedule();
  state.learning_rate = LearningRate();
  state.current = step_.Describe(intake_.room());
  state.waiting_pulls = pulls_.size();
  state.books = intake_.gate().books();
  state.staleness = intake_.gate().staleness();
  state.traffic.bytes_received = bytes_received_;
  state.traffic.bytes_sent = pulls_.bytes_answered();
  state.created = created_;
  state.now = clock_.Now();
  state.times = times_;
  state.lost_steps = lost_steps_;
  return state;
}

// ---- To its next life ----

ShardImage Coordinator::Image() const {
  ShardImage image;
  image.job_id = options_.job_id;
  image.step = step_.number();
  image.lineage = lineage_;
  image.layout = roster_.layout();
  image.optimizer = roster_.optimizer();
  image.consistency = terms_.consistency();
  image.own_consistency = options_.consistency;
  image.learning_rate = terms_.learning_rate();
  image.schedule = terms_.schedule();
  for (const SessionRecord& record : roster_.sessions().Records()) {
    // Who has left has no push to repeat, and an observer none at all.
    const bool pushes = record.role == SessionRole::kWorker && record.presence != Presence::kLeft;
    if (pushes) image.workers.push_back(record.Before(image.step));
  }
  image.forgot_workers = roster_.sessions().forgot_workers();
  image.parameters = snapshots_->latest();
  image.ended = draining_ || roster_.finished();
  return image;
}

void Coordinator::Restore(const ShardImage& image) {
  lineage_ = image.lineage;
  own_consistency_ = image.own_consistency;
  RestoreTerms(image.consistency, image.learning_rate);
  step_.Restore(image.step);
  roster_.Restore(image, clock_.Now());
  OpenModel();
  std::shared_ptr<Snapshot> parameters = snapshots_->Make();
  CopyTo(AsPiece(image.parameters->values.span()), parameters->values.span());
  parameters->step = image.step;
  snapshots_->Publish(std::move(parameters));
  times_.initialized = clock_.Now();
}

// What the operator changed holds on, unless the server was started with other terms.
void Coordinator::RestoreTerms(const Consistency& consistency,
                               absl::optional<double> learning_rate) {
  const bool same = options_.consistency == own_consistency_;
  terms_.Restore(same ? consistency : options_.consistency, learning_rate);
}

void Coordinator::Replayed(const StepRecord& record, std::shared_ptr<Snapshot> next) {
  if (record.incarnation != lineage_.current()) {
    lineage_ = Lineage(record.incarnation, lineage_, step_.number());
  }
  RestoreTerms(record.consistency, record.learning_rate);
  step_.Restore(record.step);
  if (record.forgot_workers) roster_.sessions().ForgetWorkers();
  for (const SessionRecord& worker : record.contributors) {
    roster_.sessions().RestoreLater(worker, record.step, clock_.Now());
  }
  roster_.GoOn();
  next->step = record.step;
  snapshots_->Publish(std::move(next));
}

void Coordinator::BeginLife(const std::map<Incarnation, Step>& lives) {
  Lineage earlier = lineage_;
  // Those that left nothing: each began on this history, or on what followed it and is lost.
  Step begin = step_.number();
  for (auto life = lives.rbegin(); life != lives.rend(); ++life) {
    begin = std::min(begin, life->second);
    const bool known =
        life->first == lineage_.current() || lineage_.ancestors().count(life->first) > 0;
    if (!known) earlier.AddAncestor(life->first, begin);
  }
  lineage_ = Lineage(options_.incarnation, earlier, step_.number());
}

StepRecord Coordinator::Record(const StepWork& work) const {
  StepRecord record;
  record.step = step_.number().Next();
  record.incarnation = options_.incarnation;
  record.consistency = work.consistency;
  record.learning_rates = work.learning_rates;
  record.learning_rate = terms_.learning_rate();
  record.forgot_workers = roster_.sessions().forgot_workers();
  record.contributors = roster_.sessions().PartsOf(step_.number());
  return record;
}

}  // namespace sluice
