#include "server/membership/roster.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/protocol/optimizer_options.h"
#include "server/membership/session_queries.h"

namespace sluice {
namespace {

// An element of the vector takes the memory of three floats at least, and a constant is held once.
constexpr uint64_t kConstantBytesPerElement = 8;

// How many of the expected workers have no open session and are not done.
uint32_t CountAbsent(const Census& census, uint32_t done, uint32_t expected) {
  return expected - std::min(expected, census.open(SessionRole::kWorker) + done);
}

// How many workers have joined in this incarnation and left in good order, and nobody came in their
// place, by their indexes.
uint32_t CountDone(const SessionRecords& records) {
  std::map<uint32_t, const SessionRecord*> latest;
  for (const auto& [name, record] : records) {
    if (record.role != SessionRole::kWorker || !record.joined) continue;
    const SessionRecord*& last = latest.emplace(record.index, &record).first->second;
    if (last->session < record.session) last = &record;
  }
  return static_cast<uint32_t>(std::count_if(latest.begin(), latest.end(), [](const auto& entry) {
    return entry.second->presence == Presence::kLeft;
  }));
}

// Whether workers have joined in this incarnation, all have gone, and none was seen after
// `deadline`.
bool AllAreGoneSince(const SessionTable& sessions, absl::Time deadline) {
  const Census& census = sessions.census();
  if (census.open(SessionRole::kWorker) > 0 || census.known(SessionRole::kWorker) == 0)
    return false;
  return std::all_of(sessions.records().begin(), sessions.records().end(), [&](const auto& entry) {
    const SessionRecord& record = entry.second;
    return record.role != SessionRole::kWorker || !record.joined || record.last_seen <= deadline;
  });
}

// Whether one of that role MayContinue().
bool AnyMayContinue(const SessionTable& sessions, SessionRole role, absl::Time now) {
  if (sessions.census().open(role) > 0) return true;
  return std::any_of(sessions.records().begin(), sessions.records().end(), [&](const auto& entry) {
    return entry.second.role == role && entry.second.MayContinue(now);
  });
}

// Whether an observer of that name has joined in this incarnation.
bool HasObserved(const SessionRecords& records, const std::string& observer) {
  const auto it = records.find(observer);
  return it != records.end() && it->second.role == SessionRole::kObserver && it->second.joined;
}

absl::Status NoModelError() {
  return MakeError(
      Reason::kOptimizerMismatch,
      "the workers of this job have the model, and the server has their mean gradients "
      "only, so nothing can be observed; evaluate in a worker");
}

// Of a worker that steps itself: whether this server suits it, which may have been started again
// with other options; and whether it gets the mean in the same encoding as the others.
absl::Status CheckMayStep(const JoinRequest& request, const ShardOptions& options,
                          const absl::optional<std::string>& others) {
  const bool goes_back = options.guards.on_divergence == DivergenceAction::kRestore;
  if (goes_back || !options.schedule.is_constant()) {
    return MakeError(
        Reason::kBadOptimizer,
        absl::StrCat(
            "the workers of this job step themselves, and have the model, but this server ",
            "was started with ",
            goes_back ? "--on-divergence=restore" : "a schedule of learning rates",
            "; start it without"));
  }
  if (absl::StartsWith(request.pull_encoding, "auto")) {
    return MakeError(Reason::kBadOptimizer,
                     "the workers of this job step themselves, each with the same mean, and "
                     "--pull-encoding=auto may give each another one; name an encoding");
  }
  if (others.value_or(request.pull_encoding) == request.pull_encoding) return absl::OkStatus();
  return MakeError(Reason::kOptimizerMismatch,
                   absl::StrCat("the workers of this job step themselves, each with the same ",
                                "mean: the --pull-encoding is \"", Shown(request.pull_encoding),
                                "\", the others' is \"", Shown(*others), "\""));
}

// A process that is started again may take the place of one that has died, whose stream has broken.
// One whose machine has died leaves its stream open and is silent: heartbeats come each third of a
// lease. No process of this incarnation has the session of a restored record.
absl::Status CheckName(const JoinRequest& request, const SessionTable& sessions,
                       absl::Duration lease, absl::Time now) {
  const SessionRecord* const holder = sessions.FindAlive(request.worker);
  if (holder == nullptr || holder->process_nonce == request.process_nonce) return absl::OkStatus();
  const absl::Duration left = lease / 2 - (now - holder->last_seen);
  const bool runs = holder->joined && holder->presence == Presence::kPresent;
  if (!runs || left <= absl::ZeroDuration()) return absl::OkStatus();
  absl::Status taken =
      MakeError(Reason::kNameTaken,
                absl::StrCat("the name of this process is that of ", holder->Describe(),
                             ", which takes part; give each process a name of its own (--name), "
                             "or stop that one first"));
  taken.SetPayload("sluice/retry_after", absl::Cord(absl::FormatDuration(left)));
  return taken;
}

absl::Status CheckModel(const JoinRequest& request, const JobModel& model,
                        const ShardOptions& options) {
  if (!request.job_id.empty() && request.job_id != options.job_id) {
    return MakeError(
        Reason::kWrongJob,
        absl::StrCat("this server runs job \"", options.job_id, "\", not \"", Shown(request.job_id),
                     "\"; if it was started again, give it the --checkpoint-dir of "
                     "that job, else check the address"));
  }
  const bool steps_itself =
      request.role == SessionRole::kWorker && PublishesGradients(request.optimizer.options);
  if (steps_itself) {
    const absl::Status may = CheckMayStep(request, options, model.pull_encoding);
    if (!may.ok()) return may;
  }
  if (model.layout != nullptr) {
    const absl::Status same = CheckSameLayout(*model.layout, request.layout);
    const bool observes = request.role == SessionRole::kObserver;
    if (!same.ok() || (observes && !PublishesGradients(model.optimizer->options))) return same;
    if (observes && !PublishesGradients(request.optimizer.options)) return NoModelError();
    return CheckSameOptimizer(*model.optimizer, request.optimizer);
  }
  if (request.role == SessionRole::kObserver) {
    return MakeError(Reason::kNotInitialized,
                     "no worker has joined yet, so the job has no model; observe it later");
  }
  return CheckFitsServer(request, options);
}

// Who trains on shares what the launch before has left.
void EndLaunch(SessionTable& sessions, Launches& launches) {
  std::vector<uint64_t> pushes = sessions.EndLaunch(launches.workers);
  const bool any = std::any_of(pushes.begin(), pushes.end(), [](uint64_t of) { return of > 0; });
  if (any) launches.earlier.push_back(std::move(pushes));
}

// Workers that live come back at once when their server goes on.
absl::Duration StartTimeoutOf(const ShardOptions& options) {
  return options.goes_on ? std::min(options.start_timeout, options.lease) : options.start_timeout;
}

}  // namespace

absl::Status CheckFitsServer(const JoinRequest& request, const ShardOptions& options) {
  const uint64_t constants = BytesOf(request.layout.constants());
  if (request.layout.size() + constants / kConstantBytesPerElement > options.max_elements) {
    return MakeError(
        Reason::kModelTooLarge,
        absl::StrCat("this worker's model has ", request.layout.size(), " elements",
                     constants == 0 ? "" : absl::StrCat(" and ", constants, " bytes of constants"),
                     ", more than the ", options.max_elements, constants == 0 ? "" : " elements",
                     " that this server has memory for"));
  }
  const bool averages = std::holds_alternative<AveragingOptions>(request.optimizer.options);
  if (averages && options.guards.clip_norm.has_value()) {
    return MakeError(Reason::kBadOptimizer,
                     "workers that average parameters apply their own optimizers, but this server "
                     "was started with a clip norm; start it without");
  }
  return CheckFits(request.optimizer, request.layout);
}

Roster::Roster(const ShardOptions& options, JobListener owner)
    : options_(options),
      owner_(std::move(owner)),
      sessions_(options.max_sessions, options.session_base, options.expected_workers),
      launches_{options.expected_workers, {}} {}

absl::StatusOr<const SessionRecord*> Roster::Join(const JoinRequest& request, JobListener listener,
                                                  Step active_from, absl::Time now,
                                                  Completions* completions) {
  absl::Status fits = CheckName(request, sessions_, options_.lease, now);
  if (fits.ok()) fits = CheckModel(request, model_, options_);
  if (!fits.ok()) return fits;
  const SessionRecord* const earlier = sessions_.FindAlive(request.worker);
  const JobListener replaced = earlier == nullptr ? nullptr : earlier->listener;
  // Before training has started, the slowest workers are those that have not joined.
  const auto record = sessions_.Open(request, active_from, now, started_);
  if (!record.ok()) return record.status();
  if (replaced) {
    completions->Add([replaced] { replaced({JobEvent::Kind::kEvicted, Step(), {}}); });
  }
  const bool works = request.role == SessionRole::kWorker;
  if (model_.layout == nullptr) {
    model_.layout = std::make_shared<const Layout>(request.layout);
    model_.optimizer = std::make_shared<const OptimizerConfig>(request.optimizer);
  }
  if (works && PublishesGradients(model_.optimizer->options)) {
    model_.pull_encoding = request.pull_encoding;
  }
  sessions_.Change(**record, [&](SessionRecord& joined) { joined.listener = std::move(listener); });
  if (!first_join_.has_value()) first_join_ = now;
  if (works) ended_before_ = false;
  done_ = CountDone(sessions_.records());
  return record;
}

void Roster::Restore(const ShardCheckpoint& checkpoint, absl::Time now) {
  model_.layout = checkpoint.layout;
  model_.optimizer = std::make_shared<const OptimizerConfig>(checkpoint.optimizer);
  sessions_.Restore(checkpoint.workers, checkpoint.forgot_workers, checkpoint.step, now);
  if (checkpoint.launched_workers > 0) launches_.workers = checkpoint.launched_workers;
  launches_.earlier = checkpoint.earlier_launches;
  had_workers_ = sessions_.census().open(SessionRole::kWorker) > 0;
  const bool knows_all = sessions_.census().open(SessionRole::kWorker) >= options_.expected_workers;
  if (checkpoint.step > Step() || (options_.goes_on && knows_all)) ResumeTraining();
  resumes_ = checkpoint.step > Step();
  observers_ = checkpoint.observers;
  observers_until_ = now + kObserversReturn;
  if (checkpoint.finished) EndLaunch(sessions_, launches_);
  const bool goes_on = options_.launched == Launched::kAnew ||
                       (options_.launched == Launched::kByHand && observers_.empty());
  ended_before_ = checkpoint.finished && !goes_on;
  finished_ = has_finished_ = ended_before_;
}

void Roster::BeginLaunch() {
  if (launches_.workers != options_.expected_workers) EndLaunch(sessions_, launches_);
  launches_.workers = options_.expected_workers;
}

void Roster::ResumeTraining() {
  ended_before_ = finished_ = has_finished_ = false;
  started_ = sessions_.census().open(SessionRole::kWorker) > 0;
  had_workers_ = had_workers_ || started_;
}

void Roster::MarkLost(SessionId session, absl::Time now) {
  const auto record = sessions_.Find(session);
  if (!record.ok()) return;
  sessions_.Change(**record, [now](SessionRecord& lost) {
    lost.presence = Presence::kLost;
    lost.last_seen = now;
    lost.listener = nullptr;
  });
}

absl::Status Roster::Leave(SessionId session, absl::Time now, const std::string& failure) {
  const auto record = sessions_.Find(session);
  if (!record.ok()) return record.status();
  sessions_.Change(**record, [&](SessionRecord& left) {
    const bool fails = !failure.empty() && left.role == SessionRole::kWorker;
    left.presence = fails ? Presence::kEvicted : Presence::kLeft;
    if (fails) left.awaited_until = now + options_.lease;
    left.failure = failure;
    left.listener = nullptr;
  });
  done_ = CountDone(sessions_.records());
  return absl::OkStatus();
}

void Roster::Evict(const SessionRecord& record, absl::Time now, Completions* completions) {
  if (record.listener) {
    completions->Add([listener = record.listener] {
      listener({JobEvent::Kind::kEvicted, Step(), {}});
    });
  }
  sessions_.Change(record, [&](SessionRecord& evicted) {
    evicted.presence = Presence::kEvicted;
    evicted.awaited_until = now + options_.lease;
    evicted.listener = nullptr;
  });
}

absl::Status Roster::Ban(const std::string& worker, absl::Time now, Completions* completions) {
  const SessionRecord* const record = sessions_.FindAlive(worker);
  if (record == nullptr) {
    return MakeError(Reason::kNotFound,
                     absl::StrCat("no worker \"", Shown(worker),
                                  "\" takes part; ListWorkers returns the names of those that do"));
  }
  sessions_.Change(*record, [](SessionRecord& banned) { banned.banned = true; });
  Evict(*record, now, completions);
  return absl::OkStatus();
}

void Roster::Update(absl::Time now, Completions* completions) {
  for (const SessionId silent : SilentSince(sessions_.records(), now - options_.lease)) {
    Evict(**sessions_.Find(silent), now, completions);
  }
  if (!first_join_.has_value()) {
    // If no recovered worker came back in time, the job is over, or this is a new launch, which
    // waits for its workers.
    const bool over = options_.goes_on && had_workers_;
    if (sessions_.census().open(SessionRole::kWorker) == 0) started_ = over;
    return;
  }
  late_ = CountLate();
  if (started_) return;
  const Census& census = sessions_.census();
  const uint32_t expected = options_.expected_workers;
  const bool complete = census.workers().connected + done_ >= expected;
  const bool came = census.known(SessionRole::kWorker) >= expected;
  const bool gone = (came && !AnyMayContinue(sessions_, SessionRole::kWorker, now)) ||
                    (resumes_ && AllAreGoneSince(sessions_, now - options_.lease));
  const bool timed_out = !complete && !gone && now - *first_join_ >= StartTimeoutOf(options_);
  started_ = complete || gone || timed_out;
  if (timed_out) late_ = CountAbsent(census, done_, expected);
}

uint32_t Roster::CountLate() const {
  return std::min(late_, CountAbsent(sessions_.census(), done_, options_.expected_workers));
}

bool Roster::IsOver(absl::Time now) const {
  const uint32_t evicted = sessions_.census().workers().evicted;
  const bool lost = options_.start_timeout == absl::InfiniteDuration() && evicted > 0 &&
                    evicted == sessions_.census().known(SessionRole::kWorker);
  return (started_ || ended_before_ || lost) &&
         !AnyMayContinue(sessions_, SessionRole::kWorker, now);
}

void Roster::CheckFinished(Step step, absl::Time now, Completions* completions) {
  const bool finished = IsOver(now);
  if (finished && !finished_) Announce({JobEvent::Kind::kTrainingFinished, step, {}}, completions);
  finished_ = finished;
  has_finished_ = has_finished_ || finished;
  const bool awaits_observers =
      ended_before_ && now < observers_until_ &&
      !std::all_of(observers_.begin(), observers_.end(), [this](const std::string& name) {
        return HasObserved(sessions_.records(), name);
      });
  const bool deserted =
      finished && !AnyMayContinue(sessions_, SessionRole::kObserver, now) && !awaits_observers;
  if (deserted && !deserted_ && owner_) {
    completions->Add([owner = owner_, step] { owner({JobEvent::Kind::kDeserted, step, {}}); });
  }
  deserted_ = deserted;
}

StepProgress Roster::Progress() const {
  StepProgress progress;
  progress.started = started_;
  progress.members = sessions_.census().members();
  progress.missing = sessions_.census().missing();
  progress.joining = sessions_.census().open(SessionRole::kWorker) - progress.members;
  if (!started_) {
    progress.absent = CountAbsent(sessions_.census(), done_, options_.expected_workers);
    progress.missing += progress.absent;
  }
  // Workers that have not joined have made no push.
  progress.slowest = started_ ? sessions_.census().slowest_clock() : 0;
  return progress;
}

absl::optional<Rank> Roster::FirstMissing() const {
  return started_ ? sessions_.census().first_missing() : Rank();
}

void Roster::Announce(const JobEvent& event, Completions* completions) const {
  for (const auto& [name, record] : sessions_.records()) {
    if (record.presence != Presence::kPresent || !record.listener) continue;
    completions->Add([listener = record.listener, event] { listener(event); });
  }
  if (owner_) completions->Add([owner = owner_, event] { owner(event); });
}

}  // namespace sluice
