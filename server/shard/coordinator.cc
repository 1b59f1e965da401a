#include "server/shard/coordinator.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/protocol/optimizer_options.h"
#include "server/admission/draining.h"
#include "server/admission/in_flight_capacity.h"

namespace sluice {
namespace {

// Of two bounds, of which there may be none.
absl::optional<double> Smaller(const absl::optional<double>& a, const absl::optional<double>& b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() ? a : b;
  return std::min(*a, *b);
}

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
      states_(options.lease),
      step_(settings_, roster_, pulls_, running_),
      admission_(options, settings_, incarnations_, roster_, step_, running_),
      watch_({options_, settings_, rules_, roster_, step_, admission_}) {}

// ---- Membership ----

absl::StatusOr<Welcome> Coordinator::Join(const JoinRequest& request, JobListener listener,
                                          Completions* completions) {
  if (draining()) return serving_;
  const bool opens = !has_model();
  const bool steps_itself = PublishesGradients(request.optimizer.options);
  if ((opens || steps_itself) && request.role == SessionRole::kWorker) {
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
  rules_ = ChooseRules(settings_.consistency(), *roster_.optimizer());
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

void Coordinator::Tick(bool silent, Completions* completions) {
  NoteWhoIsServed(silent);
  roster_.Update(running_.Now(), completions);
  GoDown(watch_.OnWorkers(completions), completions);
  if (applying_) return;  // the step waits for nobody
  step_.JudgeWait();
  if (step_.overdue()) EndOverdueWait(completions);
}

// Bytes that arrive renew a lease, at no cost for each chunk. The time since the last tick does not
// count against workers that wait for this server. Nor against those that others wait for, while
// another server is silent: they may wait for that one.
void Coordinator::NoteWhoIsServed(bool silent) {
  const absl::Time now = running_.Now();
  const absl::Time before = std::exchange(ticked_, now);
  for (const SessionId session : admission_.TakeHeard()) {
    roster_.sessions().NoteSeen(session, now).IgnoreError();
  }
  std::vector<SessionId> served = admission_.Served();
  if (silent) {
    const std::vector<SessionId> holders = step_.Holders(step_.Progress());
    served.insert(served.end(), holders.begin(), holders.end());
  }
  for (const SessionId session : states_.Served()) served.push_back(session);
  for (const SessionId session : served) roster_.sessions().NoteServed(session, before, now);
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
    const absl::Status fits = CheckRules(consistency, *roster_.optimizer());
    if (!fits.ok()) return fits;
  }
  settings_.Propose(consistency);
  return step_.NextBoundary();
}

absl::StatusOr<Step> Coordinator::SetLearningRate(double learning_rate) {
  const absl::Status proposed = settings_.Propose(*roster_.optimizer(), learning_rate);
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

// ---- Pulls ----

// Called after every change.
void Coordinator::Settle(Completions* completions) {
  admission_.Settle(serving_, completions);
  ServePulls(completions);
}

void Coordinator::ServePulls(Completions* completions) {
  const std::vector<SessionId> changed = roster_.sessions().TakeChanged();
  states_.Note(changed, roster_.sessions(), step_.number());
  const absl::optional<SessionId> asked =
      states_.Settle(serving_, roster_.sessions(), step_.number(), running_.Now(), completions);
  if (asked.has_value()) {
    pulls_.NoteSession(*asked);
    admission_.FailHeld(StateRequests::WantedError(), *asked, completions);
  }
  if (pulls_.size() == 0) return;
  const StepProgress progress = step_.Progress();
  for (const SessionId session : changed) pulls_.NoteSession(session);
  pulls_.Note({serving_.ok(), roster_.sessions().ended(), step_.number(), initialized(), ends(),
               settings_.policy().Completes(progress),
               settings_.policy().BoundsLead() ? progress.slowest : 0});
  const PullContext context = {step_.number(),
                               has_model() ? roster_.layout()->size() * sizeof(float) : 0,
                               settings_.consistency().inconsistent_reads, LearningRate(), ends()};
  pulls_.Serve(
      context, [&](const PullRequest& request) { return TurnOf(request, progress); },
      running_.Now(), completions);
}

absl::StatusOr<PullTurn> Coordinator::TurnOf(const PullRequest& request,
                                             const StepProgress& progress) const {
  const auto found = roster_.sessions().Find(request.session);
  const bool observes = initialized() && found.ok() && (*found)->role == SessionRole::kObserver;
  if (draining() && (!observes || suspended())) return serving_;
  if (!found.ok()) return found.status();
  const SessionRecord& record = **found;
  if (states_.Wants(request.session)) return StateRequests::WantedError();
  // An observer does not wait for a step that will never be applied, but for one that is complete.
  if (observes && ends()) {
    return settings_.policy().Completes(progress) ? PullTurn::kAwaitsStep : PullTurn::kNow;
  }
  if (!initialized() || request.min_step > step_.number()) return PullTurn::kAwaitsStep;
  if (!request.after.has_value()) return PullTurn::kNow;
  if (record.last_sequence < *request.after) return PullTurn::kAwaitsPush;
  // The server may still read the gradient from the worker's memory, where the worker would write
  // the next one.
  if (step_.contributions().IsAccumulating(record.worker)) return PullTurn::kAwaitsPush;
  // The step that is about to be published may contain the push.
  if (settings_.policy().Completes(progress)) return PullTurn::kAwaitsStep;
  const WorkerProgress worker = {record.contributed == step_.number(), record.clock};
  return settings_.policy().MayProceed(worker, progress) ? PullTurn::kNow : PullTurn::kHeldUp;
}

PullId Coordinator::Pull(const PullRequest& request, PullCallback done, Completions* completions) {
  roster_.sessions().NoteSeen(request.session, running_.Now()).IgnoreError();
  const PullId id = pulls_.Add(request, std::move(done));
  ServePulls(completions);
  return pulls_.Waits(id) ? id : PullId();
}

// ---- Steps ----

NextAction Coordinator::DecideNext(Completions* completions) {
  if (checkpoint_requested_) {
    NextAction checkpoint;
    checkpoint.checkpoint = true;
    checkpoint_requested_ = false;
    return checkpoint;
  }
  const absl::optional<absl::Time> held_up_since = step_.HeldUpSince();
  if (held_up_since.has_value()) {
    times_.longest_wait = std::max(times_.longest_wait, running_.Now() - *held_up_since);
  }
  AdoptSettings(completions);
  admission_.TakeArrivals(completions);
  GoDown(watch_.OnArrivals(completions), completions);
  NextAction action;
  action.dropped = admission_.TakeDropped();
  action.terms.consistency = settings_.consistency();
  action.terms.gap_aware = rules_.gap_aware;
  action.terms.ordered_momentum = rules_.ordered_momentum;
  if (rules_.ordered_momentum || rules_.divided_momentum) {
    action.terms.workers = std::max(roster_.sessions().census().members(), 1u);
  }
  if (rules_.divided_momentum) {
    action.terms.momentum_divisor =
        std::max(static_cast<double>(action.terms.workers) / settings_.consistency().quorum, 1.0);
  }
  action.contribution = step_.TakeNext();
  if (action.contribution.has_value()) watch_.AddGradient(action.contribution->header);
  action.apply = applying_ =
      initialized() && step_.IsComplete() && !step_.contributions().HasWaiting();
  if (action.apply) {  // other actions do not read these
    const StepOptions& options = step_.contributions().options();
    action.terms.changed = options.changed;
    action.terms.learning_rates =
        settings_.LearningRates(*roster_.optimizer(), options.changed, step_.number());
    action.terms.clip_norm = Smaller(options_.guards.clip_norm, options.clip_norm);
  }
  const absl::optional<absl::Time> first = step_.contributions().since();
  if (action.apply && options_.on_span != nullptr && first.has_value()) {
    action.waited = running_.Now() - *first;
  }
  // A step that is still to be applied must come before the end of training.
  if (action.idle() && BeginsToSaveEnd()) {
    action.checkpoint = action.saves_end = true;
  } else if (action.idle() && end_ != End::kSaving) {
    roster_.CheckFinished(step_.number(), running_.Now(), completions);
  }
  Settle(completions);
  return action;
}

bool Coordinator::AwaitsEnd() const {
  if (end_ == End::kNotSaved || end_ == End::kSaved || draining() || !initialized()) return false;
  return roster_.IsOver(running_.Now()) && roster_.sessions().AnyWorkerLeft();
}

// Whether to save the end of training now. If a worker has joined since, it is not the end.
bool Coordinator::BeginsToSaveEnd() {
  if (end_ == End::kNotSaved) return false;
  if (!roster_.IsOver(running_.Now())) end_ = End::kUnsaved;
  if (end_ != End::kUnsaved || !AwaitsEnd()) return false;
  end_ = End::kSaving;
  end_was_observed_ = roster_.sessions().census().open(SessionRole::kObserver) > 0;
  return true;
}

void Coordinator::OnEndSaved(const absl::StatusOr<Step>& saved) {
  if (end_ != End::kSaving) return;
  if (!saved.ok()) return ForgetEnd();
  end_ = *saved == step_.number() ? End::kSaved : End::kUnsaved;
}

void Coordinator::AdoptSettings(Completions* completions) {
  if (!step_.contributions().empty() || !settings_.Adopt()) return;
  TakePolicy();
  roster_.sessions().ResetClocks();
  pulls_.NoteAll();
  roster_.Announce({JobEvent::Kind::kPolicyChanged, step_.number(), settings_.consistency()},
                   completions);
}

void Coordinator::LeaveOut(const absl::Status& why, Completions* completions) {
  admission_.LeaveOut(why, completions);
  watch_.LeaveOut();
}

void Coordinator::OnAccumulated(const Contribution& contribution, Completions* completions) {
  step_.contributions().OnAccumulated(contribution.rank);
  const SessionRecord* const worker = roster_.sessions().FindAlive(contribution.rank.second);
  if (worker != nullptr) pulls_.NoteSession(worker->session);
  admission_.Release(contribution.header.session);
  // OnApplied() follows: with a journal, the step then occupies the vector that this one has left.
  if (!applying_) Settle(completions);
}

void Coordinator::OnApplied(const StepNorms& norms, Completions* completions) {
  applying_ = false;
  step_.Finish();
  times_.last_step = running_.Now();
  AnswerPublished(completions);
  GoDown(watch_.OnStep(norms, completions), completions);
  AdoptSettings(completions);
  Settle(completions);
}

void Coordinator::HoldUntilDurable() {
  durable_ = step_.number();
  admission_.HoldUntilDurable(*durable_);
  step_.HoldContributors();
}

void Coordinator::OnDurable(Step step, Completions* completions) {
  durable_ = std::max(durable_.value_or(step), step);
  AnswerPublished(completions);
  Settle(completions);
}

void Coordinator::FailHeldAnswers(const absl::Status& why, Completions* completions) {
  admission_.FailHeldAnswers(draining() ? serving_ : why, completions);
}

void Coordinator::FailPushes(const absl::Status& why, Completions* completions) {
  admission_.FailAll(draining() ? serving_ : why, completions);
  Settle(completions);
}

// Answers pushes whose step is published and, with a journal, durable.
void Coordinator::AnswerPublished(Completions* completions) {
  admission_.AnswerUpTo(std::min(durable_.value_or(step_.number()), step_.number()), completions);
}

// ---- Status ----

Phase Coordinator::phase() const {
  if (draining()) return Phase::kDraining;
  if (roster_.finished()) return Phase::kFinished;
  return roster_.started() && initialized() ? Phase::kTraining : Phase::kWaitingForWorkers;
}

// The current step's learning rate, if no program changes it, or 0 before the first worker joined.
double Coordinator::LearningRate() const {
  if (roster_.layout() == nullptr) return 0;
  return settings_.LearningRate(*roster_.optimizer(), nullptr, step_.number());
}

ShardStatus Coordinator::Describe() const {
  ShardStatus state;
  roster_.Describe(&state);
  state.end_is_saved = end_ == End::kSaved && roster_.finished();
  state.end_is_complete = state.end_is_saved && !end_was_observed_;
  state.job_id = options_.job_id;
  state.incarnation = options_.incarnation;
  state.phase = phase();
  state.step = step_.number();
  state.consistency = settings_.consistency();
  state.staleness_rules = rules_;
  state.expected_workers = options_.expected_workers;
  state.schedule = settings_.schedule();
  state.changed = step_.contributions().latest_options().changed;
  state.learning_rate =
      roster_.layout() == nullptr
          ? 0
          : settings_.LearningRate(*roster_.optimizer(), state.changed, step_.number());
  state.base_learning_rate =
      roster_.layout() == nullptr ? 0 : settings_.BaseLearningRate(*roster_.optimizer());
  state.current = step_.Describe(admission_.in_flight());
  state.waiting_pulls = pulls_.size();
  state.counters = admission_.gate().counters();
  state.staleness = admission_.gate().staleness();
  state.traffic.bytes_received = bytes_received_;
  state.traffic.bytes_sent = pulls_.bytes_answered();
  if (admission_.in_flight() != nullptr) {
    state.in_flight = admission_.in_flight()->Describe(state.elements * sizeof(float));
  }
  state.measured = measured_;
  state.journal_stopped = !journal_error_.ok();
  state.created = created_;
  state.uptime = clock_.Now() - created_;
  state.now = running_.Now();
  state.times = times_;
  state.lost_steps = lost_steps_;
  watch_.Describe(&state);
  state.diverged = ReasonOf(serving_) == Reason::kDiverged;
  return state;
}

// ---- Checkpoints and recovery ----

ShardCheckpoint Coordinator::Checkpoint() const {
  ShardCheckpoint checkpoint;
  checkpoint.job_id = options_.job_id;
  checkpoint.step = step_.number();
  checkpoint.incarnations = incarnations_;
  checkpoint.layout = roster_.layout();
  checkpoint.optimizer = *roster_.optimizer();
  checkpoint.consistency = settings_.consistency();
  checkpoint.own_consistency = options_.consistency;
  checkpoint.learning_rate = settings_.learning_rate();
  checkpoint.changed = step_.contributions().latest_options().changed;
  checkpoint.schedule = settings_.schedule();
  checkpoint.forgot_workers = roster_.sessions().forgot_workers();
  checkpoint.launched_workers = roster_.launched_workers();
  checkpoint.earlier_launches = roster_.earlier_launches();
  for (const SessionRecord& record : roster_.sessions().Records()) {
    if (record.role == SessionRole::kWorker) {
      checkpoint.workers.push_back(record.Before(checkpoint.step));
    } else if (record.MayBeRepeated()) {
      checkpoint.forgot_workers = true;
    }
  }
  checkpoint.ended = ends();
  checkpoint.finished =
      finished() && (roster_.ended_before() || roster_.sessions().AnyWorkerLeft());
  if (checkpoint.finished) checkpoint.observers = roster_.sessions().Observers();
  watch_.Describe(&checkpoint);
  return checkpoint;
}

void Coordinator::Restore(const ShardCheckpoint& checkpoint) {
  watch_.Restore(checkpoint);
  incarnations_ = checkpoint.incarnations;
  own_consistency_ = checkpoint.own_consistency;
  RestoreSettings(checkpoint.consistency, checkpoint.learning_rate);
  step_.Restore(checkpoint.step);
  step_.contributions().RestoreLatest(checkpoint.changed);
  roster_.Restore(checkpoint, running_.Now());
  TakePolicy();
  initialized_ = true;
  times_.initialized = running_.Now();
}

// The operator's changes stay in force, unless the server was started with another consistency.
void Coordinator::RestoreSettings(const Consistency& consistency,
                                  absl::optional<double> learning_rate) {
  const bool same = options_.consistency == own_consistency_;
  settings_.Restore(same ? consistency : options_.consistency, learning_rate);
}

void Coordinator::Replay(const StepRecord& record) {
  if (record.incarnation != incarnations_.current()) {
    incarnations_ = IncarnationHistory(record.incarnation, incarnations_, step_.number());
  }
  RestoreSettings(record.terms.consistency, record.learning_rate);
  TakePolicy();
  step_.Restore(record.step);
  step_.contributions().RestoreLatest(record.terms.changed);
  if (record.forgot_workers) roster_.sessions().ForgetWorkers();
  for (const SessionRecord& worker : record.contributors) {
    roster_.sessions().RestoreWorker(worker, record.step, running_.Now());
  }
  roster_.ResumeTraining();
}

void Coordinator::BeginIncarnation(const IncarnationBegins& incarnations) {
  roster_.BeginLaunch();
  IncarnationHistory earlier = incarnations_;
  // Incarnations that left no steps: each began on this history, or on later steps that are lost.
  Step begin = step_.number();
  for (auto it = incarnations.rbegin(); it != incarnations.rend(); ++it) {
    begin = std::min(begin, it->second);
    const bool known =
        it->first == incarnations_.current() || incarnations_.ancestors().count(it->first) > 0;
    if (!known) earlier.AddAncestor(it->first, begin);
  }
  incarnations_ = IncarnationHistory(options_.incarnation, earlier, step_.number());
}

StepRecord Coordinator::MakeStepRecord(const NextAction& action) const {
  StepRecord record;
  record.step = step_.number().Next();
  record.incarnation = options_.incarnation;
  record.terms = action.terms;
  record.learning_rate = settings_.learning_rate();
  record.forgot_workers = roster_.sessions().forgot_workers();
  record.contributors = roster_.sessions().Parts();
  return record;
}

}  // namespace sluice
