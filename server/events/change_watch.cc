#include "server/events/change_watch.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "server/observe/readings.h"

namespace sluice {
namespace {

using Kind = JobChange::Kind;

Kind KindOfPresence(v1::WorkerPresence presence) {
  if (presence == v1::LOST) return Kind::kLost;
  if (presence == v1::LEFT) return Kind::kLeft;
  return presence == v1::EVICTED ? Kind::kEvicted : Kind::kJoined;
}

// The warning of that kind that began at the same step; null if there is none.
const v1::TrainingWarning* Find(const v1::ServerState& state, const v1::TrainingWarning& wanted) {
  for (const v1::TrainingWarning& other : state.warnings()) {
    if (other.kind() == wanted.kind() && other.since() == wanted.since()) return &other;
  }
  return nullptr;
}

double Rate(uint64_t before, uint64_t now, double seconds) {
  return static_cast<double>(now - before) / seconds;
}

uint64_t Pushes(const v1::Worker& worker) {
  return worker.accepted() + worker.stale() + worker.skipped();
}

}  // namespace

JobNews ChangeWatch::Look(const JobMoment& moment) {
  JobNews news;
  LookAtServer(moment.state, &news);
  LookAtMeasurements(moment.state, &news);
  LookAtWarnings(moment.state, &news);
  LookAtWorkers(moment, &news);
  LookAtSpeed(moment.state, &news);
  LookAtEnd(moment.state, &news);
  last_ = moment.state;
  return news;
}

void ChangeWatch::LookAtServer(const v1::ServerState& state, JobNews* news) const {
  if (Starts(state)) {
    news->changes.push_back({Kind::kStarted});
  } else {
    const bool same = google::protobuf::util::MessageDifferencer::Equals(last_->consistency(),
                                                                         state.consistency());
    if (!same) news->changes.push_back({Kind::kPolicy});
    // A schedule changes the rate at each step, an operator its base.
    const bool had_rate = last_->base_learning_rate() > 0;
    if (had_rate && last_->base_learning_rate() != state.base_learning_rate()) {
      news->changes.push_back({Kind::kRate});
    }
  }
  if (!state.has_last_checkpoint()) return;
  const bool known = last_.has_value() && last_->has_last_checkpoint() &&
                     last_->last_checkpoint().step() == state.last_checkpoint().step();
  if (!known) news->changes.push_back({Kind::kCheckpoint});
}

bool ChangeWatch::Starts(const v1::ServerState& state) const {
  return !last_.has_value() || last_->incarnation() != state.incarnation();
}

void ChangeWatch::LookAtMeasurements(const v1::ServerState& state, JobNews* news) const {
  const uint64_t before = Starts(state) ? 0 : last_->measurement().reports();
  if (state.measurement().reports() != before) news->changes.push_back({Kind::kMeasured});
}

// What follows all else that has happened.
void ChangeWatch::LookAtEnd(const v1::ServerState& state, JobNews* news) const {
  const bool starts = Starts(state);
  const uint64_t before = starts ? 0 : last_->step();
  if (state.step() > before) news->changes.push_back({Kind::kStep});
  if (!starts && last_->phase() == state.phase()) return;
  if (state.phase() == v1::DRAINING) news->changes.push_back({Kind::kDraining});
  if (state.phase() == v1::FINISHED) news->changes.push_back({Kind::kFinished});
}

void ChangeWatch::LookAtWarnings(const v1::ServerState& state, JobNews* news) const {
  for (const v1::TrainingWarning& warning : state.warnings()) {
    const v1::TrainingWarning* const before = last_.has_value() ? Find(*last_, warning) : nullptr;
    if (before == nullptr) news->changes.push_back({Kind::kWarning, nullptr, &warning});
    const bool lasted = before == nullptr || !before->has_over();
    if (lasted && warning.has_over()) {
      news->changes.push_back({Kind::kWarningOver, nullptr, &warning});
    }
  }
}

void ChangeWatch::LookAtWorkers(const JobMoment& moment, JobNews* news) {
  double losses = 0;
  uint32_t count = 0;
  for (const v1::Worker& worker : moment.workers) {
    news->workers.push_back(LookAtWorker(worker, moment.time, news));
    if (!news->workers.back().has_loss) continue;
    losses += worker.loss();
    ++count;
  }
  if (count > 0) news->loss = losses / count;
  Forget(moment.workers);
}

WorkerNews ChangeWatch::LookAtWorker(const v1::Worker& worker, absl::Time now, JobNews* news) {
  const auto found = known_.find(worker.worker());
  const bool is_new = found == known_.end();
  LookAtPresence(worker, is_new ? nullptr : &found->second, news);
  Known& known = is_new ? known_[worker.worker()] : found->second;
  if (is_new || known.presence != worker.presence()) known.since = now;
  const bool pushed = Pushes(worker) > known.pushes;
  known.presence = worker.presence();
  known.pushes = Pushes(worker);
  return {known.since, pushed && std::isfinite(worker.loss()) && worker.loss() != 0};
}

void ChangeWatch::LookAtPresence(const v1::Worker& worker, const Known* before,
                                 JobNews* news) const {
  const bool changed = before == nullptr || before->presence != worker.presence();
  // A server that continues knows those who were there before.
  if (!changed || (before == nullptr && !worker.joined())) return;
  const bool came_and_went = before == nullptr && worker.presence() != v1::PRESENT;
  if (came_and_went) news->changes.push_back({Kind::kJoined, &worker});
  news->changes.push_back({KindOfPresence(worker.presence()), &worker});
}

// The shard forgets sessions that are long over. Names may be new each time, so what is kept of
// them must go too.
void ChangeWatch::Forget(const std::vector<v1::Worker>& all_but) {
  absl::flat_hash_set<absl::string_view> names;
  for (const v1::Worker& worker : all_but) names.insert(worker.worker());
  for (auto it = known_.begin(); it != known_.end();) {
    it = names.contains(it->first) ? std::next(it) : known_.erase(it);
  }
}

void ChangeWatch::LookAtSpeed(const v1::ServerState& state, JobNews* news) const {
  if (Starts(state)) return;
  const uint64_t gradients = state.staleness().gradients() - last_->staleness().gradients();
  if (gradients > 0) {
    news->staleness = static_cast<double>(state.staleness().sum() - last_->staleness().sum()) /
                      static_cast<double>(gradients);
  }
  const bool trains = state.step() > 0;  // before, nothing is slow
  const double seconds = Seconds(state.running()) - Seconds(last_->running());
  if (!trains || seconds <= 0) return;
  news->rates = {Rate(last_->step(), state.step(), seconds),
                 Rate(last_->pushes().received(), state.pushes().received(), seconds),
                 Rate(last_->bytes_received(), state.bytes_received(), seconds),
                 Rate(last_->bytes_sent(), state.bytes_sent(), seconds)};
}

}  // namespace sluice
