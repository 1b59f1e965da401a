#include "server/web/history/job_watch.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/policy/mode_options.h"

namespace sluice {
namespace {

double SecondsSince1970(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

Activity ActivityOf(const SessionRecord& record, Step step, const AwaitedWorker* awaited,
                    bool pulls) {
  if (record.presence == Presence::kLost) return Activity::kLost;
  if (record.presence != Presence::kPresent) return Activity::kNone;
  if (awaited != nullptr && awaited->bytes_arrived > 0) return Activity::kPushes;
  if (pulls) return Activity::kPulls;
  return record.contributed == step ? Activity::kWaits : Activity::kComputes;
}

// The sessions to which a server sends parameters. What other servers say of it is up to a second
// old.
std::set<SessionId> PullingFromAny(const JobMoment& moment) {
  std::set<SessionId> pulling = moment.pulling;
  for (const ServerStatus& server : moment.state.each_server) {
    if (!server.connected) continue;
    pulling.insert(server.figures.pulling.begin(), server.figures.pulling.end());
  }
  return pulling;
}

// An accuracy and its step; NaN: there is none.
struct Accuracy {
  double value = std::numeric_limits<double>::quiet_NaN();
  double step = std::numeric_limits<double>::quiet_NaN();
};

// The one that was reported since the last look.
Accuracy NewAccuracy(const StepMeasurement& measured, const std::vector<JobChange>& changes) {
  const auto is_measured = [](const JobChange& change) {
    return change.kind == JobChange::Kind::kMeasured;
  };
  if (std::none_of(changes.begin(), changes.end(), is_measured)) return {};
  const auto found = measured.results.find("test accuracy");
  if (found == measured.results.end()) return {};
  return {found->second, static_cast<double>(measured.step.value())};
}

// Of all tables on all servers; NaN: the model has none. What other servers say of it is up to a
// second old.
struct TableFigures {
  double rows = std::numeric_limits<double>::quiet_NaN();
  double bytes = std::numeric_limits<double>::quiet_NaN();
  double reads = std::numeric_limits<double>::quiet_NaN();
  double hits = std::numeric_limits<double>::quiet_NaN();
};

TableFigures FiguresOfTables(const ShardStatus& state) {
  if (state.layout == nullptr || state.layout->tables().empty()) return {};
  TableFigures sums{0, 0, 0, 0};
  for (const ServerStatus& server : state.each_server) {
    for (const TableStatus& table : server.figures.tables) {
      sums.rows += static_cast<double>(table.rows);
      sums.bytes += static_cast<double>(table.bytes);
      sums.reads += static_cast<double>(table.reads);
      sums.hits += static_cast<double>(table.hits);
    }
  }
  return sums;
}

}  // namespace

void JobWatch::Look(const JobMoment& moment, uint64_t memory, const SpanSummary& spans,
                    History& history) {
  history_ = &history;
  history.BeginJob(moment.state.job_id);
  sample_ = HistorySample();
  time_ = SecondsSince1970(moment.time);
  step_ = moment.state.step;
  const JobNews news = changes_.Look(moment);
  AddEvents(moment, news.changes);
  AddPresence(news.changes);
  LookAtWorkers(moment, news);
  FillColumns(moment, news, memory, spans);
  history.Add(sample_);
}

void JobWatch::AddEvent(const char* kind, std::string text) {
  history_->Add({time_, step_.value(), kind, std::move(text)});
}

// But for who comes and goes.
void JobWatch::AddEvents(const JobMoment& moment, const std::vector<JobChange>& changes) {
  const ShardStatus& state = moment.state;
  const uint64_t number = state.incarnation.value();
  for (const JobChange& change : changes) {
    if (change.kind == JobChange::Kind::kStarted) {
      AddEvent("server", number > 1
                             ? absl::StrCat("the server has started again, as number ", number)
                             : "the server has started");
    } else if (change.kind == JobChange::Kind::kPolicy) {
      AddEvent("policy", absl::StrCat("the mode is ", DescribeMode(state.consistency)));
    } else if (change.kind == JobChange::Kind::kRate) {
      AddEvent("rate", absl::StrCat("the learning rate is ", state.base_learning_rate,
                                    state.schedule.is_constant() ? "" : ", before the schedule"));
    } else if (change.kind == JobChange::Kind::kCheckpoint) {
      checkpoint_time_ = time_;
      AddEvent("checkpoint",
               absl::StrCat("a checkpoint of step ", moment.checkpoint->value(), " is saved"));
    } else if (change.kind == JobChange::Kind::kWarning) {
      AddEvent("warning", change.warning->text);
    }
  }
}

// Of a crowd only one event is made, so that it does not push out all others.
void JobWatch::AddPresence(const std::vector<JobChange>& changes) {
  constexpr size_t kMostOfAKind = 8;
  constexpr std::pair<JobChange::Kind, const char*> kKinds[] = {
      {JobChange::Kind::kJoined, "joined"},
      {JobChange::Kind::kLost, "lost"},
      {JobChange::Kind::kEvicted, "evicted"},
      {JobChange::Kind::kLeft, "left"}};
  for (const auto& [kind, name] : kKinds) {
    std::vector<std::string> names;
    for (const JobChange& change : changes) {
      if (change.kind == kind) names.push_back(change.session->worker);
    }
    if (names.size() <= kMostOfAKind) {
      for (std::string& worker : names) AddEvent(name, std::move(worker));
      continue;
    }
    const size_t count = names.size();
    names.resize(kMostOfAKind);
    AddEvent(name, absl::StrCat(count, " workers: ", absl::StrJoin(names, ", "), ", …"));
  }
}

void JobWatch::LookAtWorkers(const JobMoment& moment, const JobNews& news) {
  std::map<std::string, const AwaitedWorker*> awaited;
  for (const AwaitedWorker& worker : moment.state.current.awaited) awaited[worker.worker] = &worker;
  const std::set<SessionId> pulling = PullingFromAny(moment);
  workers_.clear();
  alive_.clear();
  for (const SessionRecord& record : moment.sessions) {
    if (record.alive()) alive_.insert(record.worker);
  }
  for (size_t i = 0; i < moment.sessions.size(); ++i) {
    const SessionRecord& record = moment.sessions[i];
    if (record.role != SessionRole::kWorker || !record.alive()) continue;
    const auto slow = awaited.find(record.worker);
    AddWorker(moment.state, record, news.sessions[i],
              slow == awaited.end() ? nullptr : slow->second, pulling.count(record.session) > 0);
  }
}

void JobWatch::AddWorker(const ShardStatus& state, const SessionRecord& record,
                         const SessionNews& news, const AwaitedWorker* awaited, bool pulls) {
  SeenWorker row;
  row.name = record.worker;
  row.activity = ActivityOf(record, state.step, awaited, pulls);
  row.awaited = awaited != nullptr;
  row.lag = state.step.value() - std::min(state.step, record.last_gradient_step).value();
  row.accepted = record.accepted;
  row.stale = record.stale;
  row.loss = record.loss;
  if (record.last_push != absl::InfinitePast()) {
    row.seconds_since_push = absl::ToDoubleSeconds(state.now - record.last_push);
  }
  row.joined = news.since;
  AddToLane(row, news.has_loss);
  workers_.push_back(std::move(row));
}

void JobWatch::AddToLane(const SeenWorker& row, bool has_loss) {
  const size_t lane = history_->LaneOf(row.name, alive_);
  if (lane == kLanes) return;
  sample_.activities[lane] = row.activity;
  if (has_loss) sample_.losses[lane] = row.loss;
}

void JobWatch::FillColumns(const JobMoment& moment, const JobNews& news, uint64_t memory,
                           const SpanSummary& spans) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const ShardStatus& state = moment.state;
  const auto count = [](uint64_t number) { return static_cast<double>(number); };
  const PushCounters& pushes = state.counters;
  const TrafficCounters& traffic = state.traffic;
  const WireTotals wire = state.wire_totals();
  const auto part = [&spans](ServerSpan span) { return spans.mean[static_cast<size_t>(span)]; };
  const auto tasks = [&moment](const char* executor) {
    const auto found = moment.executor_tasks.find(executor);
    return found == moment.executor_tasks.end() ? kUnknown : static_cast<double>(found->second);
  };
  const double waiting =
      state.current.since.has_value() ? absl::ToDoubleSeconds(state.now - *state.current.since) : 0;
  const Accuracy accuracy = NewAccuracy(state.measured.latest, news.changes);
  const TableFigures tables = FiguresOfTables(state);
  sample_.values = {time_,
                    count(state.step.value()),
                    news.rates.has_value() ? news.rates->steps : kUnknown,
                    news.loss.value_or(kUnknown),
                    state.learning_rate > 0 ? state.learning_rate : kUnknown,
                    count(pushes.accepted),
                    count(pushes.stale),
                    count(pushes.skipped),
                    count(pushes.duplicate),
                    count(pushes.rejected),
                    count(pushes.aborted),
                    count(traffic.bytes_received),
                    count(traffic.bytes_sent),
                    count(wire.received),
                    count(wire.sent),
                    count(state.workers),
                    waiting,
                    count(pushes.in_progress),
                    count(memory),
                    moment.checkpoint.has_value() ? time_ - checkpoint_time_ : kUnknown,
                    count(state.in_flight.bytes),
                    spans.step_median,
                    spans.step_p99,
                    part(ServerSpan::kWait),
                    part(ServerSpan::kAccumulate),
                    part(ServerSpan::kApply),
                    part(ServerSpan::kPublish),
                    part(ServerSpan::kEncode),
                    spans.sync_median,
                    spans.sync_p99,
                    tasks("arrive"),
                    tasks("step"),
                    tasks("encode"),
                    tasks("summary"),
                    tasks("hook"),
                    accuracy.value,
                    accuracy.step,
                    tables.rows,
                    tables.bytes,
                    tables.reads,
                    tables.hits};
}

}  // namespace sluice
