// The part of Servers that plays their journals.

#include "common/base/error.h"
#include "server/replica/replica_commands.h"
#include "tests/simulation/servers.h"

namespace sluice {

void Servers::StartJournals() {
  own_journal_ = disks_.of(0).StartJournal(
      incarnation_, [this](const JournalReport& report) { TakeJournalReport(0, report); });
  shard_->durability().EnableJournal(own_journal_.get());
}

void Servers::TakeJournalReport(uint32_t server, const JournalReport& report) {
  disks_.HearOfJournal(server, report);
  TellJournals();
}

void Servers::TellJournals() {
  const absl::Status stopped = disks_.HeardStopped();
  if (stopped != journal_stopped_) {
    journal_stopped_ = stopped;
    shard_->durability().SetJournalError(
        stopped.ok() ? stopped : MakeError(Reason::kJournalStopped, stopped.message()));
  }
  const Step durable = disks_.HeardDurable();
  if (durable > Step()) shard_->durability().OnDurable(durable);
}

void Servers::SyncSome(uint32_t server) {
  DiskJournal& journal = disks_.of(server).journal();
  if (dead() == server || journal.waiting() == 0) return;
  const auto waiting = static_cast<uint32_t>(journal.waiting());
  journal.Sync(Percent(60) ? waiting : 1 + Below(waiting));
}

void Servers::SyncAll() {
  Settle();
  for (uint32_t server = 0; server < count(); ++server) {
    DiskJournal& journal = disks_.of(server).journal();
    if (dead() != server) journal.Sync(journal.waiting());
  }
  Settle();
}

void Servers::TellStopped() {
  for (uint32_t server = 0; server < count(); ++server) {
    if (dead() != server) disks_.of(server).journal().TellIfStopped();
  }
  Settle();
}

}  // namespace sluice
