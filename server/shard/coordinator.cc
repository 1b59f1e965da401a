#include "server/shard/coordinator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "server/membership/session_queries.h"

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

Coordinator::Coordinator(JobParts& job, const Clock& clock)
    : job_(job),
      clock_(clock),
      created_(clock.Now()),
      pull_gate_(job.settings, job.lifecycle, job.roster, job.step, job.pulls, job.states,
                 job.clock) {}

void Coordinator::Tick(bool silent, Completions* completions) {
  job_.membership.NoteServed(silent);
  job_.roster.Update(job_.clock.Now(), completions);
  GoDown(job_.watch.OnWorkers(completions), completions);
  if (applying_) return;  // the step waits for nobody
  job_.step.JudgeWait();
  if (job_.step.overdue()) job_.membership.EndOverdueWait(completions);
}

void Coordinator::GoDown(const absl::Status& why, Completions* completions) {
  if (why.ok() || (job_.lifecycle.draining() && !job_.lifecycle.suspended())) return;
  job_.lifecycle.GoDown(why);
  Settle(completions);
  JobEvent event = {JobEvent::Kind::kDraining, job_.step.number(), {}};
  if (ReasonOf(why) == Reason::kDiverged) event.diverged = std::string(why.message());
  job_.roster.Announce(event, completions);
}

bool Coordinator::Suspend(const absl::Status& why, Completions* completions) {
  const bool anybody = job_.roster.sessions().census().open(SessionRole::kWorker) > 0;
  if (job_.lifecycle.draining() || job_.roster.finished() || !anybody) return false;
  job_.lifecycle.GoDown(why);
  Settle(completions);
  return true;
}

void Coordinator::OnInitialized(Completions* completions) {
  job_.lifecycle.Initialize();
  Settle(completions);
}

// ---- Pushes ----

PushId Coordinator::BeginPush(const absl::StatusOr<PushHeader>& header, AdmissionCallback start,
                              std::function<void()> cancel, Completions* completions) {
  absl::StatusOr<PushHeader> acceptable = header;
  if (header.ok() && job_.roster.model().layout != nullptr) {
    const absl::Status rows =
        CheckRows(*header, *job_.roster.model().layout, job_.options.most_row_bytes);
    if (!rows.ok()) acceptable = rows;
  }
  if (!job_.lifecycle.initialized()) acceptable = job_.lifecycle.CheckInitialized();
  if (!journal_error_.ok()) acceptable = journal_error_;
  if (job_.lifecycle.draining()) acceptable = job_.lifecycle.serving();
  if (acceptable.ok()) {
    job_.roster.sessions().NoteSeen(acceptable->session, job_.clock.Now()).IgnoreError();
  }
  const PushId id =
      job_.admission.Begin(acceptable, std::move(start), std::move(cancel), completions);
  Settle(completions);
  return job_.admission.Waits(id) ? id : PushId();
}

void Coordinator::AbandonPush(SessionId session, Abandoned why, Completions* completions) {
  job_.admission.Abandon(session, why);
  Settle(completions);
}

void Coordinator::Queue(Arrival arrival) {
  job_.roster.sessions().NoteSeen(arrival.header.session, job_.clock.Now()).IgnoreError();
  job_.admission.Queue(std::move(arrival));
}

// ---- Pulls ----

// Called after every change.
void Coordinator::Settle(Completions* completions) {
  job_.admission.Settle(job_.lifecycle.serving(), completions);
  ServePulls(completions);
}

// A worker that is asked for its model gets that as the answer to its pull; and to its push for the
// coming step, which may wait for the journal.
void Coordinator::ServePulls(Completions* completions) {
  const std::vector<SessionId> changed = job_.roster.sessions().TakeChanged();
  job_.states.Note(changed, job_.roster.sessions(), job_.step.number());
  const absl::optional<SessionId> asked =
      job_.states.Settle(job_.lifecycle.serving(), job_.roster.sessions(), job_.step.number(),
                         job_.clock.Now(), completions);
  if (asked.has_value()) {
    job_.pulls.NoteSession(*asked);
    job_.answers.FailSome(
        job_.step.number().Next(), [&](HeldAnswer& held) { return held.session == *asked; },
        StateRequests::WantedError(), completions);
  }
  pull_gate_.Settle(changed, completions);
}

PullId Coordinator::Pull(const PullRequest& request, PullCallback done, Completions* completions) {
  job_.roster.sessions().NoteSeen(request.session, job_.clock.Now()).IgnoreError();
  const PullId id = job_.pulls.Add(request, std::move(done));
  ServePulls(completions);
  return job_.pulls.Waits(id) ? id : PullId();
}

// ---- Steps ----

NextAction Coordinator::DecideNext(Completions* completions) {
  const absl::optional<absl::Time> held_up_since = job_.step.HeldUpSince();
  if (held_up_since.has_value()) {
    times_.longest_wait = std::max(times_.longest_wait, job_.clock.Now() - *held_up_since);
  }
  AdoptSettings(completions);
  job_.admission.TakeArrivals(completions);
  GoDown(job_.watch.OnArrivals(completions), completions);
  NextAction action;
  action.dropped = job_.admission.TakeDropped();
  action.terms = job_.settings.TermsFor(job_.roster.sessions().census().members());
  action.contribution = job_.step.TakeNext();
  if (action.contribution.has_value()) job_.watch.AddGradient(action.contribution->header);
  action.apply = applying_ = job_.lifecycle.initialized() && job_.step.IsComplete() &&
                             !job_.step.contributions().HasWaiting();
  if (action.apply) {  // other actions do not read these
    const StepOptions& options = job_.step.contributions().options();
    action.terms.changed = options.changed;
    action.terms.learning_rates = job_.settings.LearningRates(options.changed, job_.step.number());
    action.terms.clip_norm = Smaller(job_.options.guards.clip_norm, options.clip_norm);
  }
  const absl::optional<absl::Time> first = job_.step.contributions().since();
  if (action.apply && job_.options.on_span != nullptr && first.has_value()) {
    action.waited = job_.clock.Now() - *first;
  }
  // A step that is still to be applied must come before the end of training.
  if (action.idle() && job_.lifecycle.BeginsToSaveEnd()) {
    action.checkpoint = action.saves_end = true;
  } else if (action.idle() && !job_.lifecycle.saves_end()) {
    job_.roster.CheckFinished(job_.step.number(), job_.clock.Now(), completions);
  }
  Settle(completions);
  return action;
}

void Coordinator::AdoptSettings(Completions* completions) {
  if (!job_.step.contributions().empty() || !job_.settings.Adopt()) return;
  if (job_.roster.model().layout != nullptr) job_.admission.LimitInFlight();
  job_.roster.sessions().ChangeAll([](SessionRecord& record) { record.clock = 0; });
  job_.pulls.NoteAll();
  job_.roster.Announce(
      {JobEvent::Kind::kPolicyChanged, job_.step.number(), job_.settings.consistency()},
      completions);
}

void Coordinator::LeaveOut(const absl::Status& why, Completions* completions) {
  job_.admission.LeaveOut(why, completions);
  if (ReasonOf(why) == Reason::kNotFinite) job_.watch.LeaveOut();
}

void Coordinator::OnAccumulated(const Contribution& contribution, Completions* completions) {
  job_.step.contributions().OnAccumulated(contribution.rank);
  const SessionRecord* const worker = job_.roster.sessions().FindAlive(contribution.rank.second);
  if (worker != nullptr) job_.pulls.NoteSession(worker->session);
  job_.admission.Release(contribution.header.session);
  // OnApplied() follows: with a journal, the step then occupies the vector that this one has left.
  if (!applying_) Settle(completions);
}

void Coordinator::OnApplied(const StepNorms& norms, Completions* completions) {
  applying_ = false;
  job_.step.Finish();
  times_.last_step = job_.clock.Now();
  if (++times_.steps == 1) times_.first_step = times_.last_step;
  job_.answers.OnPublished(job_.step.number(), completions);
  GoDown(job_.watch.OnStep(norms, completions), completions);
  AdoptSettings(completions);
  Settle(completions);
}

void Coordinator::BeginJournal() {
  job_.answers.BeginJournal(job_.step.number());
  job_.step.HoldContributors();
}

void Coordinator::OnDurable(Step step, Completions* completions) {
  job_.answers.OnDurable(step, completions);
  Settle(completions);
}

void Coordinator::EndJournal(const absl::Status& why, Completions* completions) {
  job_.answers.EndJournal(job_.lifecycle.draining() ? job_.lifecycle.serving() : why, completions);
}

void Coordinator::FailPushes(const absl::Status& why, Completions* completions) {
  job_.admission.FailAll(job_.lifecycle.draining() ? job_.lifecycle.serving() : why, completions);
  Settle(completions);
}

// ---- Status ----

ShardStatus Coordinator::Describe() const {
  ShardStatus state;
  const Census& census = job_.roster.sessions().census();
  state.workers = census.open(SessionRole::kWorker);
  state.worker_counts = census.workers();
  state.gone = CountGone(job_.roster.sessions().records());
  state.observers = census.open(SessionRole::kObserver);
  state.ended_before = job_.roster.ended_before();
  const JobModel& model = job_.roster.model();
  if (model.layout != nullptr) {
    state.optimizer = model.optimizer;
    state.tensors = model.layout->ranges().size();
    state.layout = model.layout;
    state.elements = model.layout->size();
  }
  state.job_id = job_.options.job_id;
  state.incarnation = job_.options.incarnation;
  state.step = job_.step.number();
  state.consistency = job_.settings.consistency();
  state.staleness_rules = job_.settings.rules();
  state.expected_workers = job_.options.expected_workers;
  state.schedule = job_.settings.schedule();
  state.changed = job_.step.contributions().latest_options().changed;
  state.learning_rate = job_.settings.LearningRate(state.changed, job_.step.number());
  state.base_learning_rate = job_.settings.BaseLearningRate();
  state.current = job_.step.Describe(job_.admission.in_flight());
  state.waiting_pulls = job_.pulls.size();
  state.counters = job_.admission.gate().counters();
  state.staleness = job_.admission.gate().staleness();
  state.traffic.bytes_sent = job_.pulls.bytes_answered();
  if (job_.admission.in_flight() != nullptr) {
    state.in_flight = job_.admission.in_flight()->Describe(state.elements * sizeof(float));
  }
  job_.membership.Describe(&state);
  state.journal_stopped = !journal_error_.ok();
  state.created = created_;
  state.uptime = clock_.Now() - created_;
  state.now = job_.clock.Now();
  state.times = times_;
  job_.lifecycle.Describe(&state);
  state.lost_steps = job_.history.lost_steps();
  job_.watch.Describe(&state);
  return state;
}

}  // namespace sluice
