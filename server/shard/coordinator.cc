#include "server/shard/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "server/admission/draining.h"
#include "server/admission/in_flight_capacity.h"

namespace sluice {
namespace {

absl::Status NotInitializedError() {
  return MakeError(Reason::kNotInitialized, "the server has no parameters; initialize them first");
}

// Otherwise an observer could take the name of a result before the parameters are final.
absl::Status ResultsTooEarly() {
  return MakeError(Reason::kBadArgument,
                   "field results comes from an observer before training has finished; wait for "
                   "the end of training, or leave without results");
}

absl::Status CheckFarewell(const Farewell& farewell) {
  if (farewell.failure.size() > kMostFailureBytes) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("field failure has ", farewell.failure.size(),
                                  " bytes, expected at most ", kMostFailureBytes));
  }
  if (farewell.failure.empty() || farewell.results.empty()) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   "field results comes from a worker that has failed; expected none");
}

// BAD_ARGUMENT if the push may not bring the rows that its header announces.
absl::Status CheckRows(const PushHeader& header, const Layout& layout, uint64_t most) {
  if (header.row_bytes == 0) return absl::OkStatus();
  if (layout.tables().empty()) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("field row_bytes is ", header.row_bytes,
                                  ", but the model has no tables; expected 0"));
  }
  if (header.row_bytes <= most) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("field row_bytes is ", header.row_bytes, ", expected at most ",
                                most, "; push smaller batches, or raise --max-push-rows"));
}

}  // namespace

Coordinator::Coordinator(const ShardOptions& options, const Clock& clock, JobListener owner,
                         PullRelease release)
    : options_(options),
      clock_(clock),
      created_(clock.Now()),
      running_(clock, options.tick),
      ticked_(running_.Now()),
      incarnations_(options.incarnation),
      settings_(options.consistency, options.schedule),
      roster_(options, std::move(owner)),
      pulls_(options.incarnation, std::move(release)),
      step_(settings_, roster_, pulls_, running_),
      admission_(options, settings_, incarnations_, roster_, step_, running_),
      watch_({options_, settings_, rules_, roster_, step_, admission_}) {}

// ---- Membership ----

absl::StatusOr<Welcome> Coordinator::Join(const JoinRequest& request, JobListener listener,
                                          Completions* completions) {
  if (draining()) return serving_;
  const bool opens = !has_model();
  if (opens && request.role == SessionRole::kWorker) {
    const absl::Status fits = CheckRules(settings_.consistency(), request.optimizer);
    if (!fits.ok()) return fits;
  }
  // The first step waits for all the workers that were launched, so they take part in it whenever
  // they join. An observer takes part in no step, so it never has to wait for a boundary.
  const Step now = step_.number();
  const bool boundary = step_.contributions().empty() && admission_.empty();
  const bool first = !roster_.started() && !roster_.sessions().HasContributed(request.worker);
  const bool at_once = request.role == SessionRole::kObserver || boundary || first ||
                       roster_.sessions().TakesOver(request) ||
                       !settings_.policy().JoinsAtStepBoundary();
  Welcome welcome;
  welcome.resumed = roster_.sessions().Remembers(request);
  const uint32_t late = roster_.CountLate();
  const auto record = roster_.Join(request, std::move(listener), at_once ? now : now.Next(),
                                   running_.Now(), completions);
  if (!record.ok()) return record.status();
  if (opens) TakePolicy();
  GoDown(watch_.OnWorkers(completions), completions);
  welcome.session = (*record)->session;
  welcome.job_id = options_.job_id;
  welcome.incarnation = options_.incarnation;
  welcome.step = std::max((*record)->active_from, now);
  welcome.initialized = initialized();
  welcome.last_sequence = (*record)->last_sequence;
  welcome.lease = options_.lease;
  welcome.consistency = settings_.consistency();
  welcome.index = (*record)->index;
  welcome.workers = options_.expected_workers;
  welcome.pushes_before = (*record)->pushes_before;
  welcome.lost_steps = lost_steps_;
  welcome.late = roster_.CountLate() < late;
  welcome.schedule = settings_.schedule();
  welcome.earlier_launches = roster_.earlier_launches();
  if (roster_.finished() && request.role == SessionRole::kObserver && (*record)->listener) {
    // It missed the announcement.
    completions->Add([listener = (*record)->listener, now] {
      listener({JobEvent::Kind::kTrainingFinished, now, {}});
    });
  }
  return welcome;
}

void Coordinator::TakePolicy() {
  if (!has_model()) return;
  rules_ = ChooseRules(settings_.consistency(), roster_.optimizer());
  admission_.SetLimit(InFlightCapacity(*roster_.layout(), options_, settings_.consistency()));
}

absl::StatusOr<Step> Coordinator::Heartbeat(SessionId session,
                                            const absl::optional<StepMeasurement>& measurement) {
  const absl::Status renewed = roster_.sessions().NoteSeen(session, running_.Now());
  if (!renewed.ok()) return renewed;
  if (measurement.has_value()) {
    const absl::Status valid = CheckMeasurement(*measurement, step_.number());
    if (!valid.ok()) return valid;
    measured_ = {measured_.count + 1, *measurement};
  }
  return step_.number();
}

void Coordinator::ConnectionLost(SessionId session) { roster_.MarkLost(session, running_.Now()); }

absl::StatusOr<Step> Coordinator::Leave(SessionId session, const Farewell& farewell,
                                        Completions* completions) {
  const auto record = roster_.sessions().Find(session);
  if (!record.ok()) return record.status();
  const bool observes = (*record)->role == SessionRole::kObserver;
  if (observes && !farewell.results.empty() && !draining() && !roster_.has_finished()) {
    return ResultsTooEarly();
  }
  const absl::Status possible = CheckFarewell(farewell);
  if (!possible.ok()) return possible;
  const absl::Status reported = results_.Add(farewell.results);
  if (!reported.ok()) return reported;
  const absl::Status left = roster_.Leave(session, running_.Now(), farewell.failure);
  if (!left.ok()) return left;
  const bool ends_with_job = draining() && !farewell.failure.empty();
  if (!observes && !ends_with_job) watch_.OnLeave(**record, completions);
  return step_.number();
}

absl::Status Coordinator::Evict(const std::string& worker, Completions* completions) {
  return roster_.Ban(worker, running_.Now(), completions);
}

void Coordinator::Tick(bool waits, Completions* completions) {
  running_.StandStill(waits);
  NoteWhoIsServed();
  roster_.Update(running_.Now(), completions);
  GoDown(watch_.OnWorkers(completions), completions);
  if (applying_) return;  // the step waits for nobody
  step_.JudgeWait();
  if (step_.overdue()) EndOverdueWait(completions);
}

// Bytes that arrive renew a lease, at no cost for each chunk. The time since the last tick does not
// count against workers that wait for this server.
void Coordinator::NoteWhoIsServed() {
  const absl::Time now = running_.Now();
  const absl::Time before = std::exchange(ticked_, now);
  for (const SessionId session : admission_.TakeHeard()) {
    roster_.sessions().NoteSeen(session, now).IgnoreError();
  }
  for (const SessionId session : admission_.Served()) {
    roster_.sessions().NoteServed(session, before, now);
  }
}

// Ends a wait that has lasted for max_step_wait. In sync and backup the policy itself completes a
// step that shall proceed.
void Coordinator::EndOverdueWait(Completions* completions) {
  const Consistency& consistency = settings_.consistency();
  const bool by_clock = settings_.policy().BoundsLead();
  const bool evicts = consistency.on_max_step_wait == StepWaitAction::kEvict;
  const bool excuses = by_clock && consistency.on_max_step_wait == StepWaitAction::kProceed;
  // In other modes no step waits for particular workers.
  const bool anybody = by_clock || settings_.policy().OncePerStep();
  if (!anybody || (!evicts && !excuses)) return;
  for (const SessionId delayer : step_.Delayers()) {
    const SessionRecord& record = **roster_.sessions().Find(delayer);
    if (evicts) {
      roster_.Evict(record, running_.Now(), completions);
    } else {
      roster_.sessions().Change(record, [](SessionRecord& delays) { delays.excused = true; });
    }
  }
  pulls_.RestartHoldUp(running_.Now());
  step_.EndWait();
}

void Coordinator::GoDown(const absl::Status& why, Completions* completions) {
  if (why.ok() || (draining() && !suspended())) return;
  serving_ = why;
  Settle(completions);
  JobEvent event = {JobEvent::Kind::kDraining, step_.number(), {}};
  if (ReasonOf(why) == Reason::kDiverged) event.diverged = std::string(why.message());
  roster_.Announce(event, completions);
}

bool Coordinator::Suspend(const absl::Status& why, Completions* completions) {
  const bool anybody = roster_.sessions().census().open(SessionRole::kWorker) > 0;
  if (draining() || roster_.finished() || !anybody) return false;
  serving_ = why;
  Settle(completions);
  return true;
}

// ---- Settings ----

absl::StatusOr<Step> Coordinator::SetConsistency(const Consistency& consistency,
                                                 const absl::optional<Consistency>& expected) {
  if (expected.has_value() && !(settings_.next() == *expected)) {
    return absl::AbortedError(
        "the rules are not those that were expected: somebody else has changed them, and the "
        "change "
        "may wait for the end of the step; look at the rules, and try again");
  }
  const absl::Status valid = consistency.Validate();
  if (!valid.ok()) return valid;
  if (has_model()) {
    const absl::Status fits = CheckRules(consistency, roster_.optimizer());
    if (!fits.ok()) return fits;
  }
  settings_.Propose(consistency);
  return step_.NextBoundary();
}

absl::StatusOr<Step> Coordinator::SetLearningRate(double learning_rate) {
  const absl::Status proposed = settings_.Propose(roster_.optimizer(), learning_rate);
  if (!proposed.ok()) return proposed;
  return step_.NextBoundary();
}

// ---- Initial parameters ----

absl::Status Coordinator::RequestCheckpoint() {
  if (!initialized()) return NotInitializedError();
  checkpoint_requested_ = true;
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<InitializeOutcome>> Coordinator::BeginInitialize(
    SessionId session) const {
  if (draining()) return serving_;
  const auto record = roster_.sessions().FindWorker(session);
  if (!record.ok()) return record.status();
  absl::optional<InitializeOutcome> answer;
  if (initialized()) answer.emplace().step = step_.number();
  return answer;
}

void Coordinator::OnInitialized(Completions* completions) {
  initialized_ = true;
  times_.initialized = running_.Now();
  Settle(completions);
}

// ---- Pushes ----

PushId Coordinator::BeginPush(const absl::StatusOr<PushHeader>& header, AdmissionCallback start,
                              std::function<void()> cancel, Completions* completions) {
  absl::StatusOr<PushHeader> acceptable = header;
  if (header.ok() && has_model()) {
    const absl::Status rows = CheckRows(*header, *roster_.layout(), options_.most_row_bytes);
    if (!rows.ok()) acceptable = rows;
  }
  if (!initialized()) acceptable = NotInitializedError();
  if (!journal_error_.ok()) acceptable = journal_error_;
  if (draining()) acceptable = serving_;
  if (acceptable.ok()) {
    roster_.sessions().NoteSeen(acceptable->session, running_.Now()).IgnoreError();
  }
  const PushId id = admission_.Begin(acceptable, std::move(start), std::move(cancel), completions);
  Settle(completions);
  return admission_.Waits(id) ? id : PushId();
}

void Coordinator::AbandonPush(SessionId session, uint64_t bytes, Abandoned why,
                              Completions* completions) {
  bytes_received_ += bytes;
  admission_.Abandon(session, why);
  Settle(completions);
}

void Coordinator::Queue(Arrival arrival) {
  bytes_received_ += arrival.bytes;
  roster_.sessions().NoteSeen(arrival.header.session, running_.Now()).IgnoreError();
  admission_.Queue(std::move(arrival));
}

}  // namespace sluice
