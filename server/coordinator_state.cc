// What a Coordinator tells about itself: to people, and to its next life.

#include "common/vector_copy.h"
#include "server/coordinator.h"

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
  return image;
}

void Coordinator::Restore(const ShardImage& image) {
  lineage_ = Lineage(options_.incarnation, image.lineage, image.step);
  // What the operator changed holds on, unless the server was started with other terms.
  const bool same = options_.consistency == image.own_consistency;
  terms_.Restore(same ? image.consistency : options_.consistency, image.learning_rate);
  step_.Restore(image.step);
  roster_.Restore(image, clock_.Now());
  OpenModel();
  std::shared_ptr<Snapshot> parameters = snapshots_->Make();
  CopyTo(AsPiece(image.parameters->values.span()), parameters->values.span());
  parameters->step = image.step;
  snapshots_->Publish(std::move(parameters));
  times_.initialized = clock_.Now();
}

}  // namespace sluice
