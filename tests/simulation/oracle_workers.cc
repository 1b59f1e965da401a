// The oracle's rules of membership.

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/oracle.h"

namespace sluice {

Welcome Oracle::Join(const JoinRequest& request, Reason* reason) {
  Welcome welcome;
  const bool observer = request.role == SessionRole::kObserver;
  const ModelWorker* const known = workers_.Named(request.worker);
  const bool same = known != nullptr && known->nonce == request.process_nonce.value();
  welcome.resumed = Remembers(request);
  *reason = Reason::kNone;
  if (draining_) *reason = Reason::kDraining;
  if (*reason == Reason::kNone && observer && !first_join_ && !restored_)
    *reason = Reason::kNotInitialized;
  // A process that dies leaves a broken stream or, with its machine, silence.
  const bool taken = known != nullptr && !same && known->alive && known->joined && !known->lost &&
                     now_ - known->heard < scenario_.options.lease / 2;
  if (*reason == Reason::kNone && taken) *reason = Reason::kNameTaken;
  if (*reason == Reason::kNone && same && known->banned) *reason = Reason::kEvicted;
  if (*reason == Reason::kNone) {
    if (known != nullptr && known->alive && !known->lost) dismissed_.push_back(known->session);
    // Membership changes at step boundaries. All launched workers take part in the first step,
    // whenever they join, but each has one gradient in it.
    const bool has_say = step_sum_.Has(request.worker);
    const bool takes_over = known != nullptr && known->alive && !known->observer && !observer &&
                            known->from <= step_ && !has_say &&
                            request.index.value_or(known->index) == known->index;
    const bool at_once = observer || !OncePerStep() || (!started_ && !has_say) || takes_over ||
                         (step_sum_.empty() && Counters().in_progress == 0);
    const bool keeps_place = same && known->alive && known->observer == observer;
    may_choose_ = !keeps_place && !at_once && (step_sum_.empty() || !started_);
    joined_ = request.worker;
    joined_at_ = step_;
    const uint64_t session = scenario_.options.session_base.value() + ++sessions_;
    const ModelWorker& worker = workers_.Open(request, session, at_once ? step_ : step_ + 1, now_,
                                              started_, scenario_.options.expected_workers);
    if (!first_join_) first_join_ = now_;
    welcome.session = SessionId(session);
    welcome.step = Step(std::max(worker.from, step_));
    welcome.initialized = initialized();
    welcome.last_sequence = Sequence(worker.highest);
    welcome.index = worker.index;
    welcome.pushes_before = worker.pushes_before;
  }
  Tick();
  return welcome;
}

uint64_t Oracle::Concede(uint64_t from) {
  ModelWorker& worker = *workers_.Named(joined_);
  if (may_choose_ && (from == joined_at_ || from == joined_at_ + 1)) worker.from = from;
  return std::max(worker.from, joined_at_);
}

Reason Oracle::Heartbeat(SessionId session) {
  ModelWorker* const worker = workers_.Of(session.value());
  if (worker == nullptr) return Reason::kUnknownSession;
  if (!worker->lost) worker->heard = now_;
  return Reason::kNone;
}

void Oracle::Lose(SessionId session) {
  ModelWorker* const worker = workers_.Of(session.value());
  if (worker != nullptr) {
    worker->lost = true;
    worker->heard = now_;
  }
  Tick();
}

Reason Oracle::Leave(SessionId session, bool fails) {
  ModelWorker* const worker = workers_.Of(session.value());
  if (worker != nullptr) {
    worker->alive = false;
    worker->left = !fails || worker->observer;
    if (!worker->left) worker->evicted = now_;
  }
  Tick();
  return worker == nullptr ? Reason::kUnknownSession : Reason::kNone;
}

Reason Oracle::Evict(const std::string& name) {
  ModelWorker* const worker = workers_.Named(name);
  const bool known = worker != nullptr && worker->alive;
  if (known) {
    worker->banned = true;
    EndMembership(*worker);
  }
  Advance();
  return known ? Reason::kNone : Reason::kNotFound;
}

void Oracle::EndMembership(ModelWorker& worker) {
  worker.alive = false;
  worker.evicted = now_;
  if (!worker.lost) dismissed_.push_back(worker.session);
}

void Oracle::Tick() {
  const ShardOptions& options = scenario_.options;
  NoteWhoIsServed();
  for (auto& entry : workers_.all()) {
    ModelWorker& worker = entry.second;
    if (worker.alive && now_ - worker.heard >= options.lease) EndMembership(worker);
  }
  // If no worker of the earlier incarnation came back in time, all are waited for again, or the job
  // is over if the same process goes on.
  if (!first_join_.has_value() && workers_.CountAlive(false) == 0) {
    started_ = options.goes_on && had_workers_;
  }
  if (first_join_.has_value()) {
    absl::Duration timeout = options.start_timeout;
    if (options.goes_on) timeout = std::min(timeout, options.lease);
    const bool came = workers_.CountKnown() >= options.expected_workers;
    const bool gone =
        (came && !MoreIsExpected(false)) || (resumes_ && AllAreGoneSince(now_ - options.lease));
    started_ = started_ || gone || now_ - *first_join_ >= timeout ||
               workers_.CountThere() + workers_.CountDone() >= options.expected_workers;
  }
  JudgeWait();
  if (overdue_) EndOverdueWait();
  Advance();
}

// The time since the last tick: bytes that came renewed a lease, and some waited for the server.
void Oracle::NoteWhoIsServed() {
  const absl::Time before = std::exchange(ticked_, now_);
  const ModelSessions inside = SessionsInside();
  const ModelSessions held = SessionsHeldInOrder();
  std::set<uint64_t> served(held.begin(), held.end());
  for (const auto& waits : held_) served.insert(waits.second.value());
  for (auto& entry : pushes_) {
    ModelPush& push = entry.second;
    const uint64_t session = push.header.session.value();
    const bool is_inside = std::count(inside.begin(), inside.end(), session) > 0;
    if (push.fate == Fate::kWaiting && !is_inside) served.insert(session);
    if (std::exchange(push.heard, false) && push.fate == Fate::kArriving) {
      Heartbeat(push.header.session);
    }
  }
  for (const uint64_t session : served) {
    ModelWorker* const worker = workers_.Of(session);
    if (worker != nullptr) worker->served.emplace_back(before, now_);
  }
}

void Oracle::JudgeWait() {
  overdue_ = false;
  const bool for_workers = OncePerStep() || consistency_.mode == ConsistencyMode::kSsp;
  if (for_workers && IsComplete()) return;  // nobody delays a step that is complete
  const absl::optional<absl::Time> since = HeldUpSince();
  overdue_ = started_ && since.has_value() && now_ - *since >= consistency_.max_step_wait;
  if (for_workers && Delayers().empty()) overdue_ = false;
}

// Those for whom others have waited for max_step_wait, without the time that the server took.
ModelWorkers Oracle::Delayers() const {
  ModelWorkers delayers;
  const absl::optional<absl::Time> since = HeldUpSince();
  if (!since.has_value()) return delayers;
  for (const ModelWorker* const worker : OncePerStep() ? Missing() : Awaited()) {
    absl::Duration own = now_ - *since;
    for (const auto& span : worker->served) {
      if (span.second > *since) own -= span.second - std::max(span.first, *since);
    }
    if (own >= consistency_.max_step_wait) delayers.push_back(worker);
  }
  return delayers;
}

void Oracle::EndOverdueWait() {
  const bool ssp = consistency_.mode == ConsistencyMode::kSsp;
  const bool evicts = consistency_.on_max_step_wait == StepWaitAction::kEvict;
  const bool excuses = ssp && consistency_.on_max_step_wait == StepWaitAction::kProceed;
  if (!(ssp || OncePerStep()) || !(evicts || excuses)) return;
  for (const ModelWorker* const replica : Delayers()) {
    ModelWorker& worker = *workers_.Named(replica->name);
    if (evicts) EndMembership(worker);
    if (excuses) worker.excused = true;
  }
  for (auto& entry : pulls_) {
    if (entry.second.held_up_since.has_value()) entry.second.held_up_since = now_;
  }
  overdue_ = false;
}

// In sync and backup a worker has one gradient in a step, even if its process changes.
ModelWorkers Oracle::Missing() const {
  ModelWorkers missing;
  for (const ModelWorker* const worker : workers_.Members(step_)) {
    if (!step_sum_.Has(worker->name)) missing.push_back(worker);
  }
  return missing;
}

uint32_t Oracle::CountAbsent() const {
  const uint32_t known = workers_.CountAlive(false) + workers_.CountDone();
  const uint32_t expected = started_ ? 0 : scenario_.options.expected_workers;
  return expected > known ? expected - known : 0;
}

uint32_t Oracle::CountMissing() const {
  return static_cast<uint32_t>(Missing().size()) + CountAbsent();
}

ModelWorkers Oracle::Awaited() const {
  ModelWorkers slow = OncePerStep() ? Missing() : ModelWorkers();
  if (consistency_.mode != ConsistencyMode::kSsp || !HeldUpSince().has_value()) return slow;
  for (const ModelWorker* const worker : workers_.Members(step_)) {
    const bool slowest = worker->pushes == (started_ ? workers_.Slowest() : 0);
    if (!worker->excused && slowest) slow.push_back(worker);
  }
  return slow;
}

absl::optional<ModelRank> Oracle::FirstMissing() const {
  if (!started_) return ModelRank();
  absl::optional<ModelRank> first;
  for (const ModelWorker* const worker : Missing()) {
    first = std::min(first.value_or(worker->rank()), worker->rank());
  }
  return first;
}

// Of workers or of observers. One that was evicted has a lease to join again.
bool Oracle::MoreIsExpected(bool observers) const {
  const auto& all = workers_.all();
  return std::any_of(all.begin(), all.end(), [&](const auto& entry) {
    const ModelWorker& worker = entry.second;
    const bool may_return =
        !worker.left && !worker.banned && now_ - worker.evicted < scenario_.options.lease;
    return worker.observer == observers && (worker.alive || may_return);
  });
}

// Workers that have joined.
bool Oracle::AllAreGoneSince(absl::Time deadline) const {
  bool any = false;
  for (const auto& entry : workers_.all()) {
    const ModelWorker& worker = entry.second;
    if (worker.observer) continue;
    if (worker.alive || (worker.joined && worker.heard > deadline)) return false;
    any = any || worker.joined;
  }
  return any;
}

// Without a limit of the wait for the others.
bool Oracle::AllWereLost() const {
  bool any = false;
  for (const auto& entry : workers_.all()) {
    const ModelWorker& worker = entry.second;
    if (worker.observer || (!worker.joined && !worker.alive)) continue;
    if (worker.alive || worker.left || worker.banned) return false;
    any = true;
  }
  return any && scenario_.options.start_timeout == absl::InfiniteDuration();
}

void Oracle::CheckFinished() {
  const bool finished = (started_ || AllWereLost()) && !MoreIsExpected(false);
  if (finished && !finished_) Announce("finished");
  finished_ = finished;
  const bool deserted = finished && !MoreIsExpected(true);
  if (deserted && !deserted_) Announce("deserted");
  deserted_ = deserted;
}

void Oracle::Announce(const std::string& what) {
  announced_.push_back(absl::StrCat(what, " ", step_));
}

// ---- Settings ----

uint64_t Oracle::SetConsistency(const Consistency& consistency) {
  next_consistency_ = consistency;
  const uint64_t from = step_sum_.empty() ? step_ : step_ + 1;
  Advance();
  return from;
}

uint64_t Oracle::SetLearningRate(double learning_rate) {
  next_learning_rate_ = learning_rate;
  const uint64_t from = step_sum_.empty() ? step_ : step_ + 1;
  Advance();
  return from;
}

void Oracle::Adopt() {
  if (next_learning_rate_.has_value()) learning_rate_ = next_learning_rate_;
  next_learning_rate_.reset();
  if (!next_consistency_.has_value()) return;
  consistency_ = *next_consistency_;
  next_consistency_.reset();
  for (auto& entry : workers_.all()) entry.second.pushes = 0;
  Announce(absl::StrCat("policy ", ConsistencyModeName(consistency_.mode)));
}

double Oracle::LearningRate(const SharedOptions& changed) const {
  const LearningRateSchedule& schedule = scenario_.options.schedule;
  const double first = scenario_.optimizer.learning_rate;
  double rate = first;
  if (changed != nullptr) rate = std::get<SgdOptions>(changed->groups().at(0)).learning_rate;
  if (learning_rate_.has_value()) rate *= *learning_rate_ / first;
  if (schedule.kind != ScheduleKind::kStep) return rate;
  return std::ldexp(rate, -static_cast<int>(step_ / schedule.step_size));
}

}  // namespace sluice
