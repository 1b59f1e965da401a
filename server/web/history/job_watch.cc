#include "server/web/history/job_watch.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/observe/readings.h"

namespace sluice {
namespace {

double SecondsSince1970(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

// `is_slow`: the workers that others wait for take far longer than usual.
Activity ActivityOf(const v1::Worker& worker, const v1::AwaitedWorker* awaited, bool is_slow) {
  if (worker.presence() == v1::LOST) return Activity::kLost;
  if (worker.presence() != v1::PRESENT) return Activity::kNone;
  if (awaited != nullptr && awaited->bytes_arrived() > 0) return Activity::kPushes;
  if (worker.pulling()) return Activity::kPulls;
  if (worker.stalled() || (awaited != nullptr && is_slow)) return Activity::kStalled;
  return worker.contributed() ? Activity::kWaits : Activity::kComputes;
}

// An accuracy and its step; NaN: there is none.
struct Accuracy {
  double value = std::numeric_limits<double>::quiet_NaN();
  double step = std::numeric_limits<double>::quiet_NaN();
};

// The one that was reported since the last look.
Accuracy NewAccuracy(const v1::ServerState& state, const std::vector<JobChange>& changes) {
  const auto is_measured = [](const JobChange& change) {
    return change.kind == JobChange::Kind::kMeasured;
  };
  if (std::none_of(changes.begin(), changes.end(), is_measured)) return {};
  const auto& results = state.measurement().results();
  const auto found = results.find("test accuracy");
  if (found == results.end()) return {};
  return {found->second, static_cast<double>(state.measurement().step())};
}

// That the server of a job that has finished goes down says nothing of the run.
RunFacts FactsOf(const v1::ServerState& state, const std::string& before) {
  const std::string finished = VerdictName(v1::Verdict::FINISHED);
  const bool has_finished = before == finished && state.verdict().kind() == v1::Verdict::ENDING;
  RunFacts facts;
  facts.rules = RulesWords(state.consistency());
  facts.verdict = has_finished ? finished : VerdictName(state.verdict().kind());
  if (state.base_learning_rate() > 0) facts.learning_rate = state.base_learning_rate();
  if (state.has_loss()) facts.loss = state.loss();
  return facts;
}

// Of all tables on all servers; NaN: the model has none. What other servers say of it is up to a
// second old.
struct TableFigures {
  double rows = std::numeric_limits<double>::quiet_NaN();
  double bytes = std::numeric_limits<double>::quiet_NaN();
  double reads = std::numeric_limits<double>::quiet_NaN();
  double hits = std::numeric_limits<double>::quiet_NaN();
};

TableFigures FiguresOfTables(const std::vector<v1::TableState>& tables) {
  if (tables.empty()) return {};
  TableFigures sums{0, 0, 0, 0};
  for (const v1::TableState& table : tables) {
    sums.rows += static_cast<double>(table.rows());
    sums.bytes += static_cast<double>(table.bytes());
    sums.reads += static_cast<double>(table.reads());
    sums.hits += static_cast<double>(table.hits());
  }
  return sums;
}

}  // namespace

void JobWatch::Look(const JobMoment& moment, uint64_t memory, const SpanSummary& spans,
                    History& history) {
  history_ = &history;
  history.BeginJob(moment.state.job_id());
  sample_ = HistorySample();
  time_ = SecondsSince1970(moment.time);
  step_ = moment.state.step();
  const JobNews news = changes_.Look(moment);
  AddEvents(moment, news.changes);
  AddPresence(news.changes);
  LookAtWorkers(moment, news);
  FillColumns(moment, news, memory, spans);
  history.Add(sample_);
  history.SetFacts(FactsOf(moment.state, history.facts().verdict));
}

void JobWatch::AddEvent(const char* kind, std::string text) {
  history_->Add({time_, step_, kind, std::move(text)});
}

// But for who comes and goes.
void JobWatch::AddEvents(const JobMoment& moment, const std::vector<JobChange>& changes) {
  const v1::ServerState& state = moment.state;
  const uint64_t number = state.incarnation();
  for (const JobChange& change : changes) {
    if (change.kind == JobChange::Kind::kStarted) {
      AddEvent("server", number > 1
                             ? absl::StrCat("the server has started again, as number ", number)
                             : "the server has started");
    } else if (change.kind == JobChange::Kind::kPolicy) {
      AddEvent("policy", absl::StrCat("the mode is ", RulesWords(state.consistency())));
    } else if (change.kind == JobChange::Kind::kRate) {
      AddEvent("rate", absl::StrCat("the learning rate is ", state.base_learning_rate(),
                                    IsConstant(state.schedule()) ? "" : ", before the schedule"));
    } else if (change.kind == JobChange::Kind::kCheckpoint) {
      AddEvent("checkpoint",
               absl::StrCat("a checkpoint of step ", state.last_checkpoint().step(), " is saved"));
    } else if (change.kind == JobChange::Kind::kWarning) {
      AddEvent("warning", change.warning->text());
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
      if (change.kind == kind) names.push_back(change.worker->worker());
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
  std::map<std::string, const v1::AwaitedWorker*> awaited;
  for (const v1::AwaitedWorker& worker : moment.state.current().awaited()) {
    awaited[worker.worker()] = &worker;
  }
  // If workers have stalled for whom nobody waits, the job is slow because of them.
  const bool is_slow = moment.state.verdict().kind() == v1::Verdict::SLOW &&
                       moment.state.current().stalled_workers() == 0;
  workers_.clear();
  alive_.clear();
  for (const v1::Worker& worker : moment.workers) {
    if (IsAlive(worker)) alive_.insert(worker.worker());
  }
  for (size_t i = 0; i < moment.workers.size(); ++i) {
    const v1::Worker& worker = moment.workers[i];
    if (!IsAlive(worker)) continue;
    const auto late = awaited.find(worker.worker());
    const v1::AwaitedWorker* const slow = late == awaited.end() ? nullptr : late->second;
    workers_.push_back(
        {&worker, ActivityOf(worker, slow, is_slow), slow != nullptr, news.workers[i].since});
    const size_t lane = history_->LaneOf(worker.worker(), alive_);
    if (lane == kLanes) continue;
    sample_.activities[lane] = workers_.back().activity;
    if (news.workers[i].has_loss) sample_.losses[lane] = worker.loss();
  }
}

void JobWatch::FillColumns(const JobMoment& moment, const JobNews& news, uint64_t memory,
                           const SpanSummary& spans) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const v1::ServerState& state = moment.state;
  const auto count = [](uint64_t number) { return static_cast<double>(number); };
  const v1::PushCounters& pushes = state.pushes();
  const WireTotals wire = WireTotalsOf(state, moment.servers);
  const auto part = [&spans](ServerSpan span) { return spans.mean[static_cast<size_t>(span)]; };
  const auto tasks = [&state](const char* executor) {
    const auto found = state.tasks().find(executor);
    return found == state.tasks().end() ? kUnknown : static_cast<double>(found->second);
  };
  const double checkpoint_age =
      state.has_last_checkpoint() ? Seconds(state.last_checkpoint().since()) : kUnknown;
  const Accuracy accuracy = NewAccuracy(state, news.changes);
  const TableFigures tables = FiguresOfTables(moment.tables);
  sample_.values = {time_,
                    count(state.step()),
                    news.rates.has_value() ? news.rates->steps : kUnknown,
                    news.loss.value_or(kUnknown),
                    state.learning_rate() > 0 ? state.learning_rate() : kUnknown,
                    count(pushes.accepted()),
                    count(pushes.stale()),
                    count(pushes.skipped()),
                    count(pushes.duplicate()),
                    count(pushes.rejected()),
                    count(pushes.aborted()),
                    count(state.bytes_received()),
                    count(state.bytes_sent()),
                    count(wire.received),
                    count(wire.sent),
                    count(state.workers()),
                    Seconds(state.current().waiting()),
                    count(pushes.in_progress()),
                    count(memory),
                    checkpoint_age,
                    count(state.in_flight().bytes()),
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
                    tables.hits,
                    count(state.samples())};
}

}  // namespace sluice
