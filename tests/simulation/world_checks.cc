// The checks that World makes after every event.

#include <algorithm>

#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "tests/simulation/world.h"

namespace sluice {
namespace {

std::string InWords(const PushCounters& counters) {
  return absl::StrCat(counters.received, " received, ", counters.accepted, " accepted, ",
                      counters.stale, " stale, ", counters.skipped, " skipped, ",
                      counters.duplicate, " duplicate, ", counters.rejected, " rejected, ",
                      counters.aborted, " aborted, ", counters.in_progress, " in progress");
}

std::string InWords(const StepState& state) {
  std::string words = absl::StrCat(state.accumulated, " accumulated, ", state.skipped, " skipped, ",
                                   state.required, " required, ", state.missing, " missing, ",
                                   state.absent, " absent, contributed:");
  for (const std::string& name : state.contributed) absl::StrAppend(&words, " ", name);
  absl::StrAppend(&words, ", awaited:");
  for (const AwaitedWorker& worker : state.awaited) {
    absl::StrAppend(&words, " ", worker.worker, " (", absl::FormatDuration(worker.since_last_seen),
                    ")");
  }
  if (state.since.has_value()) absl::StrAppend(&words, ", since ", absl::FormatTime(*state.since));
  return words;
}

bool Same(const PushCounters& a, const PushCounters& b) {
  return a.received == b.received && a.accepted == b.accepted && a.stale == b.stale &&
         a.skipped == b.skipped && a.duplicate == b.duplicate && a.rejected == b.rejected &&
         a.aborted == b.aborted && a.in_progress == b.in_progress;
}

bool Same(const StepState& a, const StepState& b) {
  const auto same_worker = [](const AwaitedWorker& x, const AwaitedWorker& y) {
    return x.worker == y.worker && x.since_last_seen == y.since_last_seen;
  };
  return a.since == b.since && a.accumulated == b.accumulated && a.skipped == b.skipped &&
         a.required == b.required && a.missing == b.missing && a.absent == b.absent &&
         std::equal(a.awaited.begin(), a.awaited.end(), b.awaited.begin(), b.awaited.end(),
                    same_worker);
}

PullVerdict VerdictOf(const absl::StatusOr<PullResult>& result) {
  if (!result.ok()) return {ReasonOf(result.status()), 0};
  return {Reason::kNone, result->header.step.value()};
}

}  // namespace

void World::End() {
  NoteEndedGathering();
  SendLateParts();
  WriteCheckpoints();
  SyncJournals();
  servers_->Settle();
  TellStopped();
  if (!servers_->violation().empty()) Fail(servers_->violation());
  CheckDisks();
  if (!ok()) return;
  if (servers_->dead().has_value()) return EndByDeath();
  CheckParameters();
  NoteDurable();
  // A copy of the push that completes a step may be answered just before the push itself.
  for (const bool answers : {true, false}) {
    for (const Heard& heard : heard_) {
      if (ok() && (heard.what == Heard::kAnswer) == answers) Hear(heard);
    }
  }
  if (!ok()) return;
  KeepUnanswered();
  CheckParts();
  const std::string unrest = oracle_->EndCall();
  if (!unrest.empty()) Fail(unrest);
  CheckCancels();
  CheckEvents();
  CheckState();
}

// ---- Answers ----

void World::Hear(const Heard& heard) {
  switch (heard.what) {
    case Heard::kStart:
      return HearStart(heard);
    case Heard::kAnswer:
      return HearAnswer(heard);
    case Heard::kCancel:
      return HearCancel(heard);
    case Heard::kPull:
      return HearPull(heard);
  }
}

void World::HearStart(const Heard& heard) {
  SimulatedPush& push = *pushes_.at(heard.number);
  Note([&] { return absl::StrCat("push ", heard.number, " at the door: ", Words(heard.verdict)); });
  Expect("times that a push was told at the door (rule 6)", ++push.starts, 1);
  push.told = heard.verdict;
  if (!TakeDue(heard)) {
    const uint64_t until = oracle_->HeldUntil(push.header);
    const std::string expected =
        heard.verdict.answered && until > heard.durable
            ? absl::StrCat("to wait until step ", until, " is on all disks")
            : oracle_->HearAtDoor(heard.number, heard.verdict, heard.journaled);
    if (!expected.empty()) {
      Fail(absl::StrCat("gate (rule 3): push ", heard.number, " was told ", Words(heard.verdict),
                        ", expected ", expected));
    }
  }
  if (heard.verdict.answered) CheckFirstAnswer(push.header, heard.verdict.outcome);
}

void World::HearAnswer(const Heard& heard) {
  SimulatedPush& push = *pushes_.at(heard.number);
  Note([&] { return absl::StrCat("push ", heard.number, " is told: ", Words(heard.verdict)); });
  Expect("answers to a push (rule 6)", ++push.answers, 1);
  push.told = heard.verdict;
  if (!TakeDue(heard)) {
    Fail(absl::StrCat("push ", heard.number, " was answered, though none was due (rule 6)"));
    return;
  }
  if (!heard.verdict.answered) return;
  CheckFirstAnswer(push.header, heard.verdict.outcome);
  CheckCountedOnce(push, heard.verdict.outcome);
}

// Returns whether an answer to the push was due.
bool World::TakeDue(const Heard& heard) {
  const auto due = due_.find(heard.number);
  if (due == due_.end()) return false;
  if (!(heard.verdict == due->second.verdict)) {
    Fail(absl::StrCat("gate (rule 3): push ", heard.number, " was told ", Words(heard.verdict),
                      ", expected ", Words(due->second.verdict)));
  }
  if (heard.durable < due->second.until) {
    Fail(absl::StrCat("push ", heard.number, " was answered before step ", due->second.until,
                      " was on all disks"));
  }
  due_.erase(due);
  return true;
}

// At most once: a repeated push gets the first answer again, and nothing else.
void World::CheckFirstAnswer(const PushHeader& header, const PushOutcome& outcome) {
  const auto key = std::make_pair(ProcessOf(header.session), header.sequence.value());
  PushOutcome first = outcome;
  if (outcome.first_disposition.has_value()) first.disposition = *outcome.first_disposition;
  first.first_disposition.reset();
  const auto known = first_answers_.emplace(key, first);
  const bool repeats = outcome.disposition == Disposition::kDuplicate;
  if (repeats == known.second) {
    Fail(absl::StrCat("at most once (rule 2): told ", Words(outcome),
                      repeats ? ", but it was never answered" : ", but it was answered before: ",
                      repeats ? "" : Words(known.first->second)));
  } else if (repeats && !(known.first->second == first)) {
    Fail(absl::StrCat("at most once (rule 2): told ", Words(outcome), ", first it was told ",
                      Words(known.first->second)));
  }
}

void World::HearCancel(const Heard& heard) {
  SimulatedPush& push = *pushes_.at(heard.number);
  Note([&] { return absl::StrCat("push ", heard.number, " is cancelled"); });
  Expect("times that a push was cancelled", ++push.cancels, 1);
  const bool just_over = servers_->count() > 1 && push.over == event_;
  if (!push.arriving && !just_over) {
    Fail(
        absl::StrCat("push ", heard.number, " was cancelled, though it was not arriving (rule 6)"));
  }
}

void World::HearPull(const Heard& heard) {
  const SimulatedPull& pull = *pulls_.at(heard.number);
  const PullVerdict verdict = VerdictOf(pull.result);
  Note([&] { return absl::StrCat("pull ", heard.number, " is told: ", Words(verdict)); });
  Expect("answers to a pull (rule 6)", pull.answers, 1);
  const std::string expected = oracle_->HearPull(heard.number, verdict);
  if (!expected.empty()) {
    Fail(absl::StrCat("consistent pull (rule 6): pull ", heard.number, " was told ", Words(verdict),
                      ", expected ", expected));
  }
  if (pull.result.ok() && ok()) CheckPulled(heard.number);
}

void World::CheckPulled(uint64_t number) {
  const SimulatedPull& pull = *pulls_.at(number);
  const PullHeader& header = pull.result->header;
  const uint64_t step = header.step.value();
  const bool same = pull.request.have_step == header.step;
  Expect("not modified", header.not_modified, same);
  Expect("parameters that were sent", pull.result->snapshot != nullptr, !same);
  if (pull.result->snapshot == nullptr) return;
  const Values values = ValuesOf(pull.result->snapshot->values.span());
  const Values& whole = oracle_->published().at(step);
  if (values != servers_->PartOf(whole, 0, 0) || pull.result->snapshot->step != header.step) {
    Fail(absl::StrCat("consistent pull (rule 6): pull ", number, " of step ", step, " got ",
                      Words(values), ", expected ", Words(whole)));
  }
  if (number % kHeldEvery == 0) held_.emplace_back(pull.result->snapshot, values);
}

// ---- State ----

void World::CheckState() {
  const ShardStatus state = shard().Describe();
  const PushCounters expected = oracle_->Counters();
  if (!state.counters.Balanced() || !Same(state.counters, expected)) {
    Fail(absl::StrCat("counters (rule 8): ", InWords(state.counters), ", expected ",
                      InWords(expected)));
  }
  Expect("step", state.step.value(), oracle_->step());
  Expect("phase", static_cast<int>(state.phase), static_cast<int>(oracle_->phase()));
  Expect("workers", state.workers, oracle_->workers().CountAlive(false));
  Expect("observers", state.observers, oracle_->workers().CountAlive(true));
  Expect("waiting pulls", state.waiting_pulls, oracle_->WaitingPulls());
  Expect("waiting pushes", state.in_flight.waiting, oracle_->WaitingAtDoor());
  Expect("a journal that cannot be written", state.journal_stopped, oracle_->journal_stopped());
  Expect("terms", static_cast<int>(state.consistency.mode),
         static_cast<int>(oracle_->consistency().mode));
  if (shard().layout() != nullptr) {
    Expect("learning rate", state.learning_rate, oracle_->LatestRate());
  }
  CheckCurrent(state.current);
}

void World::CheckCurrent(const StepState& found) {
  const StepState expected = oracle_->Current();
  // The server may report a new process as a contributor while its predecessor's gradient counts.
  const auto by_name = [this](const std::string& worker) {
    return oracle_->HasContributed(worker);
  };
  const bool contributed =
      std::includes(found.contributed.begin(), found.contributed.end(),
                    expected.contributed.begin(), expected.contributed.end()) &&
      (!oracle_->OncePerStep() ||
       std::all_of(found.contributed.begin(), found.contributed.end(), by_name));
  if (contributed && Same(found, expected)) return;
  Fail(absl::StrCat("who is waited for (rule 7): ", InWords(found), ", expected ",
                    InWords(expected)));
}

void World::CheckEvents() {
  if (owner_heard_ != oracle_->announced()) {
    Fail(absl::StrCat("events: told ", absl::StrJoin(owner_heard_, ", "), ", expected ",
                      absl::StrJoin(oracle_->announced(), ", ")));
  }
  std::vector<uint64_t> expected = oracle_->dismissed();
  std::sort(expected.begin(), expected.end());
  std::sort(dismissed_.begin(), dismissed_.end());
  if (dismissed_ != expected) {
    Fail(absl::StrCat("sessions told that they were evicted: ", absl::StrJoin(dismissed_, ", "),
                      ", expected ", absl::StrJoin(expected, ", ")));
  }
}

// A push whose session ends while it arrives is cancelled, once.
void World::CheckCancels() {
  for (const uint64_t number : arriving_) {
    const SimulatedPush& push = *pushes_[number];
    const bool ended = oracle_->workers().Of(push.header.session.value()) == nullptr;
    Expect("times that an arriving push was cancelled", push.cancels, ended ? 1 : 0);
  }
}

void World::CheckEnd() {
  Begin([&] { return absl::StrCat("the end"); });
  FinishCheckpoints();
  FailHeldAnswers();
  End();
  for (size_t i = 0; i < pushes_.size(); ++i) {
    const SimulatedPush& push = *pushes_[i];
    if (push.past) continue;
    Expect("times that a push was told at the door", push.starts, push.cancelled ? 0 : 1);
    Expect("answers to a push", push.answers, push.whole ? 1 : 0);
  }
  for (const auto& pull : pulls_) {
    if (!pull->past) Expect("answers to a pull", pull->answers, pull->cancelled ? 0 : 1);
  }
  Expect("pushes in progress", shard().Describe().counters.in_progress, uint64_t{0});
  CheckHeld();
}

void World::CheckHeld() {
  for (const auto& held : held_) {
    if (ValuesOf(held.first->values.span()) != held.second) {
      Fail("consistent pull (rule 6): a snapshot that is held has changed");
    }
    if (servers_->count() > 1) continue;
    const std::string rows = twins_.Compare({held.first}, held.second);
    if (!rows.empty()) Fail(absl::StrCat("consistent pull (rule 6): in one that is held, ", rows));
  }
}

}  // namespace sluice
