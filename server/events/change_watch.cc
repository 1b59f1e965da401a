#include "server/events/change_watch.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace sluice {
namespace {

using Kind = JobChange::Kind;

Kind KindOfPresence(Presence presence) {
  switch (presence) {
    case Presence::kLost:
      return Kind::kLost;
    case Presence::kLeft:
      return Kind::kLeft;
    case Presence::kEvicted:
      return Kind::kEvicted;
    case Presence::kPresent:
      break;
  }
  return Kind::kJoined;
}

// The warning of that kind that began at the same step; null if there is none.
const TrainingWarning* Find(const std::vector<TrainingWarning>& warnings,
                            const TrainingWarning& wanted) {
  const auto found =
      std::find_if(warnings.begin(), warnings.end(), [&wanted](const TrainingWarning& other) {
        return other.kind == wanted.kind && other.since == wanted.since;
      });
  return found == warnings.end() ? nullptr : &*found;
}

}  // namespace

JobNews ChangeWatch::Look(const JobMoment& moment) {
  JobNews news;
  LookAtServer(moment, &news);
  LookAtMeasurements(moment.state, &news);
  LookAtWarnings(moment, &news);
  LookAtSessions(moment, &news);
  LookAtSpeed(moment.state, &news);
  LookAtEnd(moment.state, &news);
  last_ = moment.state;
  return news;
}

void ChangeWatch::LookAtServer(const JobMoment& moment, JobNews* news) {
  const ShardStatus& state = moment.state;
  if (Starts(state)) {
    news->changes.push_back({Kind::kStarted});
  } else {
    if (!(last_->consistency == state.consistency)) news->changes.push_back({Kind::kPolicy});
    // A schedule changes the rate at each step, an operator its base.
    const bool had_rate = last_->base_learning_rate > 0;
    if (had_rate && last_->base_learning_rate != state.base_learning_rate) {
      news->changes.push_back({Kind::kRate});
    }
  }
  if (moment.checkpoint.has_value() && moment.checkpoint != checkpoint_) {
    news->changes.push_back({Kind::kCheckpoint});
  }
  checkpoint_ = moment.checkpoint;
}

bool ChangeWatch::Starts(const ShardStatus& state) const {
  return !last_.has_value() || last_->incarnation != state.incarnation;
}

void ChangeWatch::LookAtMeasurements(const ShardStatus& state, JobNews* news) const {
  const uint64_t before = Starts(state) ? 0 : last_->measured.count;
  if (state.measured.count != before) news->changes.push_back({Kind::kMeasured});
}

// What follows all else that has happened.
void ChangeWatch::LookAtEnd(const ShardStatus& state, JobNews* news) const {
  const bool starts = Starts(state);
  const Step before = starts ? Step() : last_->step;
  if (state.step > before) news->changes.push_back({Kind::kStep});
  if (!starts && last_->phase == state.phase) return;
  if (state.phase == Phase::kDraining) news->changes.push_back({Kind::kDraining});
  if (state.phase == Phase::kFinished) news->changes.push_back({Kind::kFinished});
}

void ChangeWatch::LookAtWarnings(const JobMoment& moment, JobNews* news) const {
  for (const TrainingWarning& warning : moment.state.warnings) {
    const TrainingWarning* const before =
        last_.has_value() ? Find(last_->warnings, warning) : nullptr;
    if (before == nullptr) news->changes.push_back({Kind::kWarning, nullptr, &warning});
    const bool lasted = before == nullptr || !before->over.has_value();
    if (lasted && warning.over.has_value()) {
      news->changes.push_back({Kind::kWarningOver, nullptr, &warning});
    }
  }
}

void ChangeWatch::LookAtSessions(const JobMoment& moment, JobNews* news) {
  double losses = 0;
  uint32_t count = 0;
  for (const SessionRecord& record : moment.sessions) {
    const bool works = record.role == SessionRole::kWorker;
    news->sessions.push_back(works ? LookAtSession(record, moment.state.now, news) : SessionNews());
    if (!news->sessions.back().has_loss) continue;
    losses += record.loss;
    ++count;
  }
  if (count > 0) news->loss = losses / count;
  Forget(moment.sessions);
}

SessionNews ChangeWatch::LookAtSession(const SessionRecord& record, absl::Time now, JobNews* news) {
  const auto found = known_.find(record.worker);
  const bool is_new = found == known_.end();
  LookAtPresence(record, is_new ? nullptr : &found->second, news);
  Known& known = is_new ? known_[record.worker] : found->second;
  if (is_new || known.presence != record.presence) known.since = now;
  const bool pushed = record.pushes() > known.pushes;
  known.presence = record.presence;
  known.pushes = record.pushes();
  return {known.since, pushed && std::isfinite(record.loss) && record.loss != 0};
}

void ChangeWatch::LookAtPresence(const SessionRecord& record, const Known* before,
                                 JobNews* news) const {
  const bool changed = before == nullptr || before->presence != record.presence;
  // A server that continues knows those who were there before.
  if (!changed || (before == nullptr && !record.joined)) return;
  const bool came_and_went = before == nullptr && record.presence != Presence::kPresent;
  if (came_and_went) news->changes.push_back({Kind::kJoined, &record});
  news->changes.push_back({KindOfPresence(record.presence), &record});
}

// The shard forgets sessions that are long over. Names may be new each time, so what is kept of
// them must go too.
void ChangeWatch::Forget(const std::vector<SessionRecord>& all_but) {
  absl::flat_hash_set<absl::string_view> names;
  for (const SessionRecord& record : all_but) names.insert(record.worker);
  for (auto it = known_.begin(); it != known_.end();) {
    it = names.contains(it->first) ? std::next(it) : known_.erase(it);
  }
}

void ChangeWatch::LookAtSpeed(const ShardStatus& state, JobNews* news) const {
  if (Starts(state)) return;
  const uint64_t gradients = state.staleness.total() - last_->staleness.total();
  if (gradients > 0) {
    news->staleness = static_cast<double>(state.staleness.sum() - last_->staleness.sum()) /
                      static_cast<double>(gradients);
  }
  const bool trains = state.step > Step();  // before, nothing is slow
  if (!trains || state.now <= last_->now) return;
  const double seconds = absl::ToDoubleSeconds(state.now - last_->now);
  const auto rate = [seconds](uint64_t before, uint64_t now) {
    return static_cast<double>(now - before) / seconds;
  };
  news->rates = {rate(last_->step.value(), state.step.value()),
                 rate(last_->counters.received, state.counters.received),
                 rate(last_->traffic.bytes_received, state.traffic.bytes_received),
                 rate(last_->traffic.bytes_sent, state.traffic.bytes_sent)};
}

}  // namespace sluice
