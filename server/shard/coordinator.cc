#include "server/shard/coordinator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

// Of two bounds, of which there may be none.
absl::optional<double> Smaller(const absl::optional<double>& a, const absl::optional<double>& b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() ? a : b;
  return std::min(*a, *b);
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
      settings_(options.consistency, options.schedule),
      roster_(options, std::move(owner)),
      lifecycle_(roster_, running_),
      pulls_(options.incarnation, std::move(release)),
      states_(options.lease),
      step_(settings_, roster_, pulls_, running_),
      pull_gate_(settings_, lifecycle_, roster_, step_, pulls_, states_, running_),
      history_({options_, settings_, roster_, lifecycle_, step_, admission_, watch_, running_}),
      admission_(options_, settings_, history_.incarnations(), roster_, step_, answers_, running_),
      watch_({options_, settings_, roster_, step_, admission_}),
      membership_({options_, settings_, roster_, lifecycle_, step_, admission_, pulls_, states_,
                   history_, watch_, running_}) {}

void Coordinator::Tick(bool silent, Completions* completions) {
  membership_.NoteServed(silent);
  roster_.Update(running_.Now(), completions);
  GoDown(watch_.OnWorkers(completions), completions);
  if (applying_) return;  // the step waits for nobody
  step_.JudgeWait();
  if (step_.overdue()) membership_.EndOverdueWait(completions);
}

void Coordinator::GoDown(const absl::Status& why, Completions* completions) {
  if (why.ok() || (lifecycle_.draining() && !lifecycle_.suspended())) return;
  lifecycle_.GoDown(why);
  Settle(completions);
  JobEvent event = {JobEvent::Kind::kDraining, step_.number(), {}};
  if (ReasonOf(why) == Reason::kDiverged) event.diverged = std::string(why.message());
  roster_.Announce(event, completions);
}

bool Coordinator::Suspend(const absl::Status& why, Completions* completions) {
  const bool anybody = roster_.sessions().census().open(SessionRole::kWorker) > 0;
  if (lifecycle_.draining() || roster_.finished() || !anybody) return false;
  lifecycle_.GoDown(why);
  Settle(completions);
  return true;
}

void Coordinator::OnInitialized(Completions* completions) {
  lifecycle_.Initialize();
  Settle(completions);
}

// ---- Pushes ----

PushId Coordinator::BeginPush(const absl::StatusOr<PushHeader>& header, AdmissionCallback start,
                              std::function<void()> cancel, Completions* completions) {
  absl::StatusOr<PushHeader> acceptable = header;
  if (header.ok() && roster_.model().layout != nullptr) {
    const absl::Status rows = CheckRows(*header, *roster_.model().layout, options_.most_row_bytes);
    if (!rows.ok()) acceptable = rows;
  }
  if (!lifecycle_.initialized()) acceptable = lifecycle_.CheckInitialized();
  if (!journal_error_.ok()) acceptable = journal_error_;
  if (lifecycle_.draining()) acceptable = lifecycle_.serving();
  if (acceptable.ok()) {
    roster_.sessions().NoteSeen(acceptable->session, running_.Now()).IgnoreError();
  }
  const PushId id = admission_.Begin(acceptable, std::move(start), std::move(cancel), completions);
  Settle(completions);
  return admission_.Waits(id) ? id : PushId();
}

void Coordinator::AbandonPush(SessionId session, Abandoned why, Completions* completions) {
  admission_.Abandon(session, why);
  Settle(completions);
}

void Coordinator::Queue(Arrival arrival) {
  roster_.sessions().NoteSeen(arrival.header.session, running_.Now()).IgnoreError();
  admission_.Queue(std::move(arrival));
}

// ---- Pulls ----

// Called after every change.
void Coordinator::Settle(Completions* completions) {
  admission_.Settle(lifecycle_.serving(), completions);
  ServePulls(completions);
}

// A worker that is asked for its model gets that as the answer to its pull; and to its push for the
// coming step, which may wait for the journal.
void Coordinator::ServePulls(Completions* completions) {
  const std::vector<SessionId> changed = roster_.sessions().TakeChanged();
  states_.Note(changed, roster_.sessions(), step_.number());
  const absl::optional<SessionId> asked = states_.Settle(
      lifecycle_.serving(), roster_.sessions(), step_.number(), running_.Now(), completions);
  if (asked.has_value()) {
    pulls_.NoteSession(*asked);
    answers_.FailSome(
        step_.number().Next(), [&](HeldAnswer& held) { return held.session == *asked; },
        StateRequests::WantedError(), completions);
  }
  pull_gate_.Settle(changed, completions);
}

PullId Coordinator::Pull(const PullRequest& request, PullCallback done, Completions* completions) {
  roster_.sessions().NoteSeen(request.session, running_.Now()).IgnoreError();
  const PullId id = pulls_.Add(request, std::move(done));
  ServePulls(completions);
  return pulls_.Waits(id) ? id : PullId();
}

// ---- Steps ----

NextAction Coordinator::DecideNext(Completions* completions) {
  const absl::optional<absl::Time> held_up_since = step_.HeldUpSince();
  if (held_up_since.has_value()) {
    times_.longest_wait = std::max(times_.longest_wait, running_.Now() - *held_up_since);
  }
  AdoptSettings(completions);
  admission_.TakeArrivals(completions);
  GoDown(watch_.OnArrivals(completions), completions);
  NextAction action;
  action.dropped = admission_.TakeDropped();
  action.terms = settings_.TermsFor(roster_.sessions().census().members());
  action.contribution = step_.TakeNext();
  if (action.contribution.has_value()) watch_.AddGradient(action.contribution->header);
  action.apply = applying_ =
      lifecycle_.initialized() && step_.IsComplete() && !step_.contributions().HasWaiting();
  if (action.apply) {  // other actions do not read these
    const StepOptions& options = step_.contributions().options();
    action.terms.changed = options.changed;
    action.terms.learning_rates = settings_.LearningRates(options.changed, step_.number());
    action.terms.clip_norm = Smaller(options_.guards.clip_norm, options.clip_norm);
  }
  const absl::optional<absl::Time> first = step_.contributions().since();
  if (action.apply && options_.on_span != nullptr && first.has_value()) {
    action.waited = running_.Now() - *first;
  }
  // A step that is still to be applied must come before the end of training.
  if (action.idle() && lifecycle_.BeginsToSaveEnd()) {
    action.checkpoint = action.saves_end = true;
  } else if (action.idle() && !lifecycle_.saves_end()) {
    roster_.CheckFinished(step_.number(), running_.Now(), completions);
  }
  Settle(completions);
  return action;
}

void Coordinator::AdoptSettings(Completions* completions) {
  if (!step_.contributions().empty() || !settings_.Adopt()) return;
  if (roster_.model().layout != nullptr) admission_.LimitInFlight();
  roster_.sessions().ChangeAll([](SessionRecord& record) { record.clock = 0; });
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
  answers_.OnPublished(step_.number(), completions);
  GoDown(watch_.OnStep(norms, completions), completions);
  AdoptSettings(completions);
  Settle(completions);
}

void Coordinator::BeginJournal() {
  answers_.BeginJournal(step_.number());
  step_.HoldContributors();
}

void Coordinator::OnDurable(Step step, Completions* completions) {
  answers_.OnDurable(step, completions);
  Settle(completions);
}

void Coordinator::EndJournal(const absl::Status& why, Completions* completions) {
  answers_.EndJournal(lifecycle_.draining() ? lifecycle_.serving() : why, completions);
}

void Coordinator::FailPushes(const absl::Status& why, Completions* completions) {
  admission_.FailAll(lifecycle_.draining() ? lifecycle_.serving() : why, completions);
  Settle(completions);
}

// ---- Status ----

ShardStatus Coordinator::Describe() const {
  ShardStatus state;
  const Census& census = roster_.sessions().census();
  state.workers = census.open(SessionRole::kWorker);
  state.worker_counts = census.workers();
  state.observers = census.open(SessionRole::kObserver);
  state.ended_before = roster_.ended_before();
  const JobModel& model = roster_.model();
  if (model.layout != nullptr) {
    state.optimizer = model.optimizer;
    state.tensors = model.layout->ranges().size();
    state.layout = model.layout;
    state.elements = model.layout->size();
  }
  state.job_id = options_.job_id;
  state.incarnation = options_.incarnation;
  state.step = step_.number();
  state.consistency = settings_.consistency();
  state.staleness_rules = settings_.rules();
  state.expected_workers = options_.expected_workers;
  state.schedule = settings_.schedule();
  state.changed = step_.contributions().latest_options().changed;
  state.learning_rate = settings_.LearningRate(state.changed, step_.number());
  state.base_learning_rate = settings_.BaseLearningRate();
  state.current = step_.Describe(admission_.in_flight());
  state.waiting_pulls = pulls_.size();
  state.counters = admission_.gate().counters();
  state.staleness = admission_.gate().staleness();
  state.traffic.bytes_sent = pulls_.bytes_answered();
  if (admission_.in_flight() != nullptr) {
    state.in_flight = admission_.in_flight()->Describe(state.elements * sizeof(float));
  }
  membership_.Describe(&state);
  state.journal_stopped = !journal_error_.ok();
  state.created = created_;
  state.uptime = clock_.Now() - created_;
  state.now = running_.Now();
  state.times = times_;
  lifecycle_.Describe(&state);
  state.lost_steps = history_.lost_steps();
  watch_.Describe(&state);
  return state;
}

}  // namespace sluice
