// The part of World that plays a job with a journal: syncs, disks that are full, and answers that
// wait for all disks.

#include <algorithm>
#include <utility>

#include "tests/simulation/world.h"

namespace sluice {

// An incarnation begins to serve workers, from that step on.
void World::StartServing(Step begin) {
  const uint64_t lost = disks_.LostSteps(begin);
  shard().durability().SetLostSteps(lost);
  if (lost > 0) oracle_->NoteLostSteps();
  disks_.Begin(scenario_.options.incarnation, begin);
  if (!scenario_.journal) return;
  shard().durability().TakeCheckpoints(0, [this](const auto& taken) {
    if (taken.ok()) initial_ = *taken;
  });
  servers_->StartJournals();
}

// ---- Disks ----

// Some servers sync, at some time of the event.
void World::SyncJournals() {
  if (!scenario_.journal || quiet_) return;
  for (uint32_t server = 0; server < servers_->count(); ++server) {
    if (servers_->Percent(scenario_.sync_chance))
      servers_->Later([this, server] { servers_->SyncSome(server); });
  }
}

void World::FillDisk(uint32_t server) {
  Begin([&] { return absl::StrCat("the disk of server ", server, " is full"); });
  disks_.of(server).journal().SetFull(true);
  End();
}

void World::FreeDisks() {
  for (uint32_t server = 0; server < servers_->count() && ok(); ++server) {
    DiskJournal& journal = disks_.of(server).journal();
    if (!journal.full()) continue;
    Begin([&] { return absl::StrCat("the disk of server ", server, " has space again"); });
    journal.SetFull(false);
    journal.Sync(journal.waiting());
    End();
  }
}

void World::Sync() {
  if (!scenario_.journal || !(disks_.any_taken() || disks_.AnyWaiting())) return;
  Begin([&] { return absl::StrCat("all servers write what they have begun to write"); });
  FinishCheckpoints();
  servers_->SyncAll();
  End();
}

// Servers whose disks are full say so when the calls of the event are over.
void World::TellStopped() {
  if (scenario_.journal) servers_->TellStopped();
}

// ---- Answers ----

void World::Hear(Heard::What what, uint64_t number, const PushVerdict& verdict) {
  Heard heard = {what, number, verdict};
  if (scenario_.journal) {
    heard.durable = disks_.Durable().value();
    const auto latest = what == Heard::kStart ? shard().store().stripe().latest() : nullptr;
    if (latest != nullptr) heard.journaled = latest->step.value() - heard.durable;
  }
  heard_.push_back(heard);
}

void World::NoteDurable() {
  if (!scenario_.journal) return;
  oracle_->NoteDurable(disks_.Durable().value());
  oracle_->SetJournalStopped(disks_.AnyStopped());
}

// What was heard is judged. The other answers that are due must wait for the disks.
void World::KeepUnanswered() {
  if (scenario_.journal && oracle_->WaitingAtDoor() > 0) {
    for (const auto& silent : oracle_->TakeSilent(shard().Describe().in_flight.waiting)) {
      const PushHeader& header = pushes_.at(silent.first)->header;
      due_.emplace(silent.first, DueAnswer{silent.second, oracle_->HeldUntil(header)});
    }
  }
  const uint64_t durable = scenario_.journal ? disks_.Durable().value() : 0;
  for (auto& entry : due_) {
    DueAnswer& due = entry.second;
    if (due.until <= durable) return Fail(absl::StrCat("push ", entry.first, " was not answered"));
    if (std::exchange(due.held, true)) continue;
    SimulatedPush& push = *pushes_.at(entry.first);
    oracle_->Hold(push.header.session, due.until);
    if (push.arriving) EndCall(entry.first);
  }
}

// The server ends. Steps that are not complete, or not on all disks, come to no disk any more.
void World::FailHeldAnswers() {
  if (!scenario_.journal) return;
  servers_->SyncAll();
  const uint64_t durable = disks_.Durable().value();
  const Reason why = oracle_->draining() ? Reason::kDraining : Reason::kNone;
  for (auto& entry : due_) {
    if (entry.second.until > durable) entry.second = {PushVerdict::Error(why), 0};
  }
  servers_->EndFirst(absl::UnavailableError("the server ends"));
}

// The same, before all servers go back.
void World::CheckHeldAnswersFailed() {
  for (const auto& due : due_) {
    if (!due.second.held) continue;
    const auto heard = std::count_if(heard_.begin(), heard_.end(), [&](const Heard& one) {
      return one.number == due.first && (one.what == Heard::kAnswer || one.what == Heard::kStart);
    });
    Expect("answers to a push whose step is not on all disks", heard, 1l);
  }
}

}  // namespace sluice
