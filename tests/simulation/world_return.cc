// The part of World in which a server of several is killed, and all go back to the newest
// checkpoint. What was heard before is judged as always, but the event is not: it may have happened
// or not.

#include <algorithm>
#include <utility>

#include "common/base/error.h"
#include "tests/simulation/world.h"

namespace sluice {

void World::Kill(uint32_t server, uint64_t acts) {
  Begin([&] {
    return absl::StrCat("server ", server, " will be killed after ", acts, " calls and messages");
  });
  PlanDeath(server, acts);
  End();
}

void World::PlanDeath(uint32_t server, uint64_t acts) {
  servers_->Kill(server, acts, [this] { heard_in_time_ = heard_.size(); });
}

void World::Spare() { servers_->Spare(); }

// ---- The end of an incarnation ----

void World::EndByDeath() {
  judging_ = true;
  JudgeHeard(0);
  judging_ = false;
  if (ok()) EndIncarnation();
  if (ok()) BeginAnew();
}

// What came from there on.
void World::JudgeHeard(size_t from) {
  for (const bool answers : {true, false}) {
    for (size_t i = from; i < heard_.size() && ok(); ++i) {
      if ((heard_[i].what == Heard::kAnswer) != answers) continue;
      i < heard_in_time_ ? Hear(heard_[i]) : HearLate(heard_[i]);
    }
  }
}

// Nobody hears what a dead process says. One that goes back refuses what could not happen, with an
// error without a reason. Then a pull does not wait for what was refused.
void World::HearLate(const Heard& heard) {
  if (servers_->dead() == 0u) return;
  if (heard.what == Heard::kAnswer && !heard.verdict.goes_on()) Hear(heard);
  if (heard.what != Heard::kPull) return;
  Expect("answers to a pull (rule 6)", pulls_.at(heard.number)->answers, 1);
  if (pulls_.at(heard.number)->result.ok()) CheckPulled(heard.number);
}

void World::EndIncarnation() {
  const bool lives = servers_->dead() != 0u;
  const ShardStatus left = shard().Describe();
  judging_ = true;
  CheckReached(left.step.value());
  reached_ = left.step.value();
  if (lives) {
    const bool suspended = shard().Suspend(absl::UnavailableError("all go back"));
    if (suspended) CheckEndedCalls();
    const size_t heard = heard_.size();
    servers_->EndFirst(absl::UnavailableError("all go back"));
    JudgeHeard(heard);
    if (suspended) CheckHeldAnswersFailed();
    disks_.Finish();
  } else {
    disks_.Forget();
  }
  judging_ = false;
  KeepModelSteps();
  servers_->EndOthers();
  bool& goes_on = scenario_.options.goes_on;
  goes_on = lives && (goes_on || left.phase == Phase::kTraining);
}

// The step that was being made is not made if it was not published.
void World::CheckReached(uint64_t step) {
  if (step == step_ || (step == step_ + 1 && step == oracle_->step())) return;
  if (repeats_.has_value() && step > step_ && step <= *repeats_) return;
  Fail(absl::StrCat("step (rule 4): it went from ", step_, " to ", step,
                    ", when a server died; expected at most ", oracle_->step()));
}

void World::CheckEndedCalls() {
  for (const uint64_t number : gathering_) {
    const SimulatedPush& push = *pushes_.at(number);
    const auto answered = std::count_if(heard_.begin(), heard_.end(), [&](const Heard& heard) {
      return heard.what == Heard::kAnswer && heard.number == number;
    });
    if (push.gathers != PushId()) Expect("answers to a push that gathered", answered, 1l);
  }
  for (const auto& pull : pulls_) {
    const bool came = pull->parts[0].state != CallState::kNotSent;
    if (came && !pull->past && !pull->cancelled) Expect("answers to a pull", pull->answers, 1);
  }
}

// ---- The next incarnation ----

void World::BeginAnew() {
  ++returns_;
  const JobDisks::Checkpoint* const newest = disks_.newest();
  const Step step = newest == nullptr ? Step() : newest->state.step;
  Begin([&] {
    return newest == nullptr ? std::string("the servers begin anew, without a checkpoint")
                             : absl::StrCat("the servers go back to step ", step.value());
  });
  CheckHeld();
  ForgetCallsInFlight();
  servers_ = nullptr;
  repeats_.reset();
  initial_ = nullptr;
  BeginIncarnation();
  if (servers_->Percent(20)) PlanDeath(servers_->Below(servers_->count()), servers_->Below(60));
  step_ = step.value();
  lost_steps_ = scenario_.journal ? 0 : reached_ - std::min(reached_, step_);
  oracle_ = std::make_unique<Oracle>(scenario_, clock_.Now());
  if (newest != nullptr) ExpectAnew(*newest);
  ForgetAnswers();
  oracle_->BeginCall(clock_.Now());
  if (ok()) newest == nullptr ? StartServing(step) : Recover(*newest);
  End();
}

// Of each incarnation, what all later ones have found is part of this history.
void World::ExpectAnew(const JobDisks::Checkpoint& checkpoint) {
  const Step last = LastRepeated(checkpoint);
  ModelCheckpoint expected = checkpoint.expected;
  const std::map<Incarnation, Step> begun = disks_.BegunSince(checkpoint);
  Step found = last;
  for (auto it = begun.rbegin(); it != begun.rend(); ++it) {
    expected.incarnations[it->first.value()] = found.value();
    found = std::min(found, it->second);
  }
  expected.incarnations[checkpoint.key().incarnation.value()] = found.value();
  oracle_ = std::make_unique<Oracle>(scenario_, clock_.Now(), expected);
  repeated_tolerance_.clear();
  if (ok() && scenario_.journal) ExpectRepeated(checkpoint, last);
}

void World::Recover(const JobDisks::Checkpoint& checkpoint) {
  const absl::StatusOr<ShardCheckpoint> state = disks_.Load(checkpoint);
  if (!state.ok()) return Fail(absl::StrCat("server 0 cannot load: ", state.status().message()));
  const LoadCheckpoint load = {SourceOf(*state), disks_.BegunSince(checkpoint)};
  const bool with_others = scenario_.journal && servers_->count() > 1;
  if (with_others) shard().durability().BeginRecovery();
  ExpectReason(shard().durability().Restore(*state, load.begins), Reason::kNone);
  if (scenario_.journal) {
    repeats_ = oracle_->step();
    if (!RepeatSteps(load)) return;
    repeats_.reset();
  } else {
    shard().durability().BeginIncarnation(load.begins);
  }
  StartServing(Step(oracle_->step()));
  TellWhole();
  if (!scenario_.journal && ok()) JoinTooEarly();
  if (with_others) shard().durability().EndRecovery();
}

// A worker joins before all servers have their parts of the checkpoint, and have repeated their
// steps.
void World::JoinTooEarly() {
  if (servers_->count() == 1) return;
  servers_->ActSome();
  if (interrupted() || !latest_join_.has_value()) return;
  if (!scenario_.journal && servers_->AllLoaded()) return;
  const absl::Status refused = shard().Join(*latest_join_, nullptr).status();
  if (absl::IsUnavailable(refused)) return;
  Fail(absl::StrCat("a worker joins before all servers have loaded their stripes, and is told: ",
                    refused.ToString()));
}

// ---- Checkpoints ----

// Server 0 writes what it can write of a checkpoint, perhaps, at some time.
void World::WriteCheckpoints() {
  if (!disks_.any_taken() || quiet_ || !servers_->Percent(40)) return;
  servers_->Later([this] {
    if (servers_->Percent(50)) return disks_.SaveOwn();
    if (disks_.WriteState()) TellWhole();
  });
}

void World::TellWhole() {
  const std::vector<CheckpointKey> whole = disks_.whole();
  if (whole.empty()) return;
  disks_.of(0).Keep({whole});
  shard().durability().KeepCheckpoints(whole);
  if (scenario_.journal) servers_->TellJournals();
}

void World::CheckDisks() {
  if (!scenario_.has_disks()) return;
  if (!servers_->dead().has_value()) disks_.CheckReports();
  disks_.CheckWhole();
  if (!disks_.violation().empty()) Fail(disks_.violation());
}

// All that were taken become whole, and nothing else remains.
void World::FinishCheckpoints() {
  if (!scenario_.has_disks()) return;
  servers_->WriteAll();
  while (disks_.any_taken() && disks_.WriteState()) TellWhole();
  Expect("a checkpoint that is not written", disks_.any_taken(), false);
  servers_->WriteAll();
  for (uint32_t server = 0; server < servers_->count() && ok(); ++server) {
    if (disks_.of(server).HasOnly(disks_.whole())) continue;
    Fail(absl::StrCat("server ", server, " keeps files that belong to no checkpoint"));
  }
}

}  // namespace sluice
