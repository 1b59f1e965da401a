#include "server/web/history/job_watch.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/policy/mode_options.h"

namespace sluice {
namespace {

double SecondsSince1970(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

Activity ActivityOf(const SessionRecord& record, Step step, const AwaitedWorker* awaited) {
  if (record.presence == Presence::kLost) return Activity::kLost;
  if (record.presence != Presence::kPresent) return Activity::kNone;
  if (awaited != nullptr && awaited->bytes_arrived > 0) return Activity::kPushes;
  return record.contributed == step ? Activity::kWaits : Activity::kComputes;
}

const char* KindOfPresence(Presence presence) {
  switch (presence) {
    case Presence::kLost:
      return "lost";
    case Presence::kLeft:
      return "left";
    case Presence::kEvicted:
      return "evicted";
    case Presence::kPresent:
      break;
  }
  return "joined";
}

}  // namespace

void JobWatch::Look(const ShardStatus& state, const std::vector<SessionRecord>& sessions,
                    const Surroundings& surroundings, History& history) {
  history_ = &history;
  history.BeginJob(state.job_id);
  sample_ = HistorySample();
  time_ = SecondsSince1970(surroundings.time);
  step_ = state.step;
  LookAtServer(state, surroundings);
  LookAtWarnings(state);
  LookAtWorkers(state, sessions);
  FillColumns(state, surroundings);
  history.Add(sample_);
  last_ = state;
}

void JobWatch::AddEvent(const char* kind, std::string text) {
  history_->Add({time_, step_.value(), kind, std::move(text)});
}

void JobWatch::LookAtServer(const ShardStatus& state, const Surroundings& surroundings) {
  if (!last_.has_value() || last_->incarnation != state.incarnation) {
    const uint64_t number = state.incarnation.value();
    AddEvent("server", number > 1 ? absl::StrCat("the server has started again, as number ", number)
                                  : "the server has started");
  } else {
    if (!(last_->consistency == state.consistency)) {
      AddEvent("policy", absl::StrCat("the mode is ", DescribeMode(state.consistency)));
    }
    // A schedule changes the rate at each step, an operator its base.
    if (last_->base_learning_rate != state.base_learning_rate && last_->base_learning_rate > 0) {
      AddEvent("rate", absl::StrCat("the learning rate is ", state.base_learning_rate));
    }
  }
  if (surroundings.checkpoint.has_value() && surroundings.checkpoint != checkpoint_) {
    checkpoint_time_ = time_;
    AddEvent("checkpoint",
             absl::StrCat("a checkpoint of step ", surroundings.checkpoint->value(), " is saved"));
  }
  checkpoint_ = surroundings.checkpoint;
}

void JobWatch::LookAtWarnings(const ShardStatus& state) {
  for (const TrainingWarning& warning : state.warnings) {
    const auto is_same = [&warning](const TrainingWarning& other) {
      return other.kind == warning.kind && other.since == warning.since;
    };
    const bool known =
        last_.has_value() && std::any_of(last_->warnings.begin(), last_->warnings.end(), is_same);
    if (!known) AddEvent("warning", warning.text);
  }
}

void JobWatch::LookAtPresence(const SessionRecord& record, const Known* before) {
  const bool changed = before == nullptr || before->presence != record.presence;
  // A server that continues knows those who were there before.
  if (!changed || (before == nullptr && !record.joined)) return;
  const bool came_and_went = before == nullptr && record.presence != Presence::kPresent;
  if (came_and_went) changes_[KindOfPresence(Presence::kPresent)].push_back(record.worker);
  changes_[KindOfPresence(record.presence)].push_back(record.worker);
}

// Of a crowd only one event is made, so that it does not push out all others.
void JobWatch::AddChanges() {
  constexpr size_t kMostOfAKind = 8;
  for (const char* const kind : {"joined", "lost", "evicted", "left"}) {
    std::vector<std::string>& names = changes_[kind];
    if (names.size() <= kMostOfAKind) {
      for (std::string& name : names) AddEvent(kind, std::move(name));
      continue;
    }
    const size_t count = names.size();
    names.resize(kMostOfAKind);
    AddEvent(kind, absl::StrCat(count, " workers: ", absl::StrJoin(names, ", "), ", …"));
  }
}

void JobWatch::LookAtWorkers(const ShardStatus& state, const std::vector<SessionRecord>& sessions) {
  std::map<std::string, const AwaitedWorker*> awaited;
  for (const AwaitedWorker& worker : state.current.awaited) awaited[worker.worker] = &worker;
  workers_.clear();
  alive_.clear();
  changes_.clear();
  losses_ = 0;
  for (const SessionRecord& record : sessions) {
    if (record.alive()) alive_.insert(record.worker);
  }
  for (const SessionRecord& record : sessions) {
    if (record.role != SessionRole::kWorker) continue;
    const auto slow = awaited.find(record.worker);
    AddWorker(state, record, slow == awaited.end() ? nullptr : slow->second);
  }
  AddChanges();
  Forget(sessions);
}

// The shard forgets sessions that are long over. Names may be new each time, so what is kept of
// them must go too.
void JobWatch::Forget(const std::vector<SessionRecord>& all_but) {
  absl::flat_hash_set<absl::string_view> names;
  for (const SessionRecord& record : all_but) names.insert(record.worker);
  for (auto it = known_.begin(); it != known_.end();) {
    it = names.contains(it->first) ? std::next(it) : known_.erase(it);
  }
}

void JobWatch::AddWorker(const ShardStatus& state, const SessionRecord& record,
                         const AwaitedWorker* awaited) {
  const auto found = known_.find(record.worker);
  LookAtPresence(record, found == known_.end() ? nullptr : &found->second);
  Known& known = known_[record.worker];
  if (found == known_.end() || known.presence != record.presence) known.joined = state.now;
  const bool pushed = record.pushes() > known.pushes;
  known.presence = record.presence;
  known.pushes = record.pushes();
  const bool has_loss = pushed && std::isfinite(record.loss) && record.loss != 0;
  if (has_loss) AddToLoss(record.loss);
  if (!record.alive()) return;
  SeenWorker row;
  row.name = record.worker;
  row.activity = ActivityOf(record, state.step, awaited);
  row.awaited = awaited != nullptr;
  row.lag = state.step.value() - std::min(state.step, record.last_gradient_step).value();
  row.accepted = record.accepted;
  row.stale = record.stale;
  row.loss = record.loss;
  if (record.last_push != absl::InfinitePast()) {
    row.seconds_since_push = absl::ToDoubleSeconds(state.now - record.last_push);
  }
  row.joined = known.joined;
  AddToLane(row, has_loss);
  workers_.push_back(std::move(row));
}

void JobWatch::AddToLoss(float loss) {
  ++losses_;
  double& mean = sample_.values[kLoss];
  mean = losses_ == 1 ? loss : mean + (loss - mean) / losses_;
}

void JobWatch::AddToLane(const SeenWorker& row, bool has_loss) {
  const size_t lane = history_->LaneOf(row.name, alive_);
  if (lane == kLanes) return;
  sample_.activities[lane] = row.activity;
  if (has_loss) sample_.losses[lane] = row.loss;
}

void JobWatch::FillColumns(const ShardStatus& state, const Surroundings& surroundings) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  double rate = kUnknown;
  const bool trains = state.step > Step() && last_.has_value();  // before, nothing is slow
  if (trains && last_->incarnation == state.incarnation && state.now > last_->now) {
    rate = static_cast<double>(state.step.value() - last_->step.value()) /
           absl::ToDoubleSeconds(state.now - last_->now);
  }
  const auto count = [](uint64_t number) { return static_cast<double>(number); };
  const PushCounters& pushes = state.counters;
  const TrafficCounters& traffic = state.traffic;
  const double waiting =
      state.current.since.has_value() ? absl::ToDoubleSeconds(state.now - *state.current.since) : 0;
  sample_.values = {time_,
                    count(state.step.value()),
                    rate,
                    sample_.values[kLoss],
                    state.learning_rate > 0 ? state.learning_rate : kUnknown,
                    count(pushes.accepted),
                    count(pushes.stale),
                    count(pushes.skipped),
                    count(pushes.duplicate),
                    count(pushes.rejected),
                    count(pushes.aborted),
                    count(traffic.bytes_received),
                    count(traffic.bytes_sent),
                    count(traffic.wire_bytes_received),
                    count(traffic.wire_bytes_sent),
                    count(state.workers),
                    waiting,
                    count(pushes.in_progress),
                    count(surroundings.memory),
                    checkpoint_.has_value() ? time_ - checkpoint_time_ : kUnknown};
}

}  // namespace sluice
