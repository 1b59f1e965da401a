#include "server/events/story_log.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/error.h"
#include "server/observe/readings.h"

namespace sluice {
namespace {

using Kind = JobChange::Kind;

constexpr size_t kMostNamed = 4;  // workers with a line each, of those that do the same in a look
constexpr absl::Duration kFirstPause = absl::Seconds(10);
constexpr absl::Duration kLongestPause = absl::Minutes(1);
constexpr absl::Duration kFirstWait = absl::Seconds(20);

// ", test accuracy 0.8561" for each of the first few.
std::string ResultsIn(const Results& results) {
  std::string text;
  size_t told = 0;
  for (const auto& [name, value] : results) {
    if (++told > kMostNamed) return absl::StrCat(text, ", …");
    absl::StrAppendFormat(&text, ", %s %.4g", Shown(name), value);
  }
  return text;
}

std::string HowManyAreHere(const v1::ServerState& state) {
  const uint32_t here = state.worker_counts().connected();
  return absl::StrCat("workers here: ", here, " of ", std::max(here, state.expected_workers()));
}

// A worker that an earlier process of the server has told of has no host here.
std::string NameOf(const v1::Worker& worker) {
  if (worker.host().empty()) return Shown(worker.worker());
  return absl::StrCat(Shown(worker.worker()), " (process ", worker.pid(), " on ",
                      Shown(worker.host()), ")");
}

// What one of these workers has done, and what several have.
struct Deed {
  Kind kind;
  const char* several;
};
constexpr Deed kDeeds[] = {
    {Kind::kJoined, "have joined"},
    {Kind::kLost, "have lost their connections, and may come back within their leases"},
    {Kind::kEvicted, "take no part any more: they have failed, or were silent for their leases"},
    {Kind::kLeft, "have left"},
};

std::string Gone(const v1::Worker& worker, Kind kind) {
  if (kind == Kind::kLost) {
    return absl::StrCat(NameOf(worker),
                        " has lost its connection, and may come back within its lease");
  }
  if (kind == Kind::kEvicted) {
    return absl::StrCat(NameOf(worker),
                        " takes no part any more: it has failed, or was silent for its lease");
  }
  return absl::StrCat(NameOf(worker), " has left, after ", worker.accepted(),
                      worker.accepted() == 1 ? " gradient" : " gradients", " that counted");
}

}  // namespace

std::vector<std::string> StoryLog::Look(const JobMoment& moment, const JobNews& news) {
  Lines lines;
  TellWorkers(moment, news, &lines);
  TellStalled(moment, &lines);
  TellSettings(moment, news, &lines);
  TellProgress(moment, news, &lines);
  TellWaiting(moment, &lines);
  TellEnd(moment, news, &lines);
  return lines;
}

std::string StoryLog::Joined(const v1::Worker& worker) {
  const bool is_back = gone_.erase(worker.worker()) > 0;
  return absl::StrCat(NameOf(worker), is_back ? " is back" : " has joined", " as worker ",
                      worker.index());
}

void StoryLog::TellWorkers(const JobMoment& moment, const JobNews& news, Lines* lines) {
  for (const Deed& deed : kDeeds) {
    std::vector<const v1::Worker*> doers;
    for (const JobChange& change : news.changes) {
      if (change.kind == deed.kind) doers.push_back(change.worker);
    }
    Lines told;
    for (const v1::Worker* const worker : doers) {
      told.push_back(deed.kind == Kind::kJoined ? Joined(*worker) : Gone(*worker, deed.kind));
      if (deed.kind == Kind::kLost || deed.kind == Kind::kEvicted) gone_.insert(worker->worker());
    }
    if (told.size() > kMostNamed)
      told = {absl::StrCat(WorkersWords(told.size()), " ", deed.several)};
    if (!told.empty()) absl::StrAppend(&told.back(), "; ", HowManyAreHere(moment.state));
    lines->insert(lines->end(), told.begin(), told.end());
  }
  if (gone_.size() <= moment.workers.size()) return;
  std::set<std::string> known;  // names may be new each time
  for (const v1::Worker& worker : moment.workers) {
    if (gone_.count(worker.worker()) > 0) known.insert(worker.worker());
  }
  gone_ = std::move(known);
}

// The first few; one that goes on to push and stalls again is told again.
void StoryLog::TellStalled(const JobMoment& moment, Lines* lines) {
  std::set<std::string> stalled;
  for (const v1::StalledWorker& worker : moment.state.current().stalled()) {
    stalled.insert(worker.worker());
    if (stalled_.count(worker.worker()) > 0 || stalled.size() > kMostNamed) continue;
    lines->push_back(StalledWords(worker));
  }
  stalled_ = std::move(stalled);
}

void StoryLog::TellSettings(const JobMoment& moment, const JobNews& news, Lines* lines) const {
  const v1::ServerState& state = moment.state;
  for (const JobChange& change : news.changes) {
    if (change.kind == Kind::kPolicy) {
      lines->push_back(absl::StrCat("from step ", state.step(), " on the rules are ",
                                    RulesWords(state.consistency())));
    } else if (change.kind == Kind::kRate) {
      lines->push_back(absl::StrFormat("from step %d on the learning rate is %g, without schedule",
                                       state.step(), state.base_learning_rate()));
    } else if (change.kind == Kind::kMeasured) {
      lines->push_back(absl::StrCat("step ", state.measurement().step(), " was measured",
                                    ResultsIn(MeasuredResults(state))));
    }
  }
}

void StoryLog::TellProgress(const JobMoment& moment, const JobNews& news, Lines* lines) {
  const v1::ServerState& state = moment.state;
  const bool trained = std::exchange(trains_, state.phase() == v1::TRAINING);
  if (!trains_) return;
  if (!trained) {
    lines->push_back(absl::StrCat(
        state.incarnation() > 1 ? "training goes on with " : "training has begun with ",
        WorkersWords(state.workers()), ", and is at step ", state.step()));
    pause_ = kFirstPause;
  }
  if (news.loss.has_value()) {
    loss_sum_ += *news.loss;
    ++losses_;
  }
  const absl::Duration since = moment.time - told_;
  if (trained && (since < pause_ || state.step() == told_step_)) return;
  if (trained) {
    const double rate =
        static_cast<double>(state.step() - told_step_) / absl::ToDoubleSeconds(since);
    lines->push_back(absl::StrFormat("step %d: %.3g steps/s", state.step(), rate));
    if (losses_ > 0) absl::StrAppendFormat(&lines->back(), ", loss %.4g", loss_sum_ / losses_);
    absl::StrAppend(&lines->back(), ", ", WorkersWords(state.workers()));
    pause_ = std::min(2 * pause_, kLongestPause);
  }
  told_ = moment.time;
  told_step_ = state.step();
  loss_sum_ = 0;
  losses_ = 0;
}

// A gradient that waits for them is told by StepWaitLog.
void StoryLog::TellWaiting(const JobMoment& moment, Lines* lines) {
  const v1::ServerState& state = moment.state;
  const uint32_t here = state.worker_counts().connected();
  // Where models with names train, the one without may wait for ever.
  const bool others_train = state.has_verdict() && state.verdict().kind() != v1::Verdict::WAITING;
  const bool waits =
      state.phase() == v1::WAITING_FOR_WORKERS && here < state.expected_workers() && !others_train;
  if (!waits) {
    waits_since_.reset();
    return;
  }
  if (!waits_since_.has_value()) {
    waits_since_ = moment.time;
    next_wait_ = kFirstWait;
  }
  const absl::Duration waited = moment.time - *waits_since_;
  if (waited < next_wait_) return;
  next_wait_ = 2 * waited;
  lines->push_back(absl::StrCat("has waited ", TimeWords(waited), " for ",
                                state.expected_workers() - here, " of ",
                                WorkersWords(state.expected_workers()), " to join"));
}

void StoryLog::TellEnd(const JobMoment& moment, const JobNews& news, Lines* lines) const {
  const v1::ServerState& state = moment.state;
  for (const JobChange& change : news.changes) {
    if (change.kind != Kind::kFinished && change.kind != Kind::kDraining) continue;
    std::string line =
        absl::StrCat(change.kind == Kind::kFinished ? "training has finished at step "
                                                    : "training ends at step ",
                     state.step());
    line += TrainedWords(state);
    line += ResultsIn(moment.results.empty() ? MeasuredResults(state) : moment.results);
    lines->push_back(line);
  }
}

}  // namespace sluice
