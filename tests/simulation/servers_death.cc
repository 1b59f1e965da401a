// The part of Servers that kills one of them.

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/servers.h"

namespace sluice {

void Servers::Kill(uint32_t server, uint64_t acts, std::function<void()> killed) {
  if (death_ != Death::kNone) return;
  death_ = Death::kPlanned;
  doomed_ = server;
  acts_left_ = acts;
  killed_ = std::move(killed);
  if (acts == 0) AdvanceDeath();
}

void Servers::Spare() {
  if (death_ == Death::kPlanned) death_ = Death::kNone;
}

absl::optional<uint32_t> Servers::dead() const {
  if (death_ == Death::kNone || death_ == Death::kPlanned) return absl::nullopt;
  return doomed_;
}

// Returns whether it has changed.
bool Servers::AdvanceDeath() {
  if (death_ == Death::kNone || death_ == Death::kOver || acts_left_-- > 0) return false;
  acts_left_ = Below(20);
  if (death_ == Death::kPlanned) {
    Die();
  } else if (death_ == Death::kUnnoticed) {
    if (log_ != nullptr) Note(absl::StrCat("server 0 notices that server ", doomed_, " is lost"));
    death_ = Death::kNoticed;
    shard_->StopWaiting(absl::UnavailableError("a server is lost"));
  } else {
    death_ = Death::kOver;
  }
  return true;
}

// The calls of a shard whose process is dead return, too. Nobody hears what they say.
void Servers::Die() {
  if (log_ != nullptr) Note(absl::StrCat("server ", doomed_, " is killed"));
  death_ = doomed_ == 0 ? Death::kOver : Death::kUnnoticed;
  killed_();
  if (doomed_ == 0) shard_->StopWaiting(absl::UnavailableError("killed"));
}

void Servers::EndOthers() {
  calls_.clear();
  for (uint32_t server = 1; server < count(); ++server) {
    if (server == doomed_) continue;
    for (uint32_t i = Below(30); i > 0; --i) links_[server - 1]->Act();
    files_[server - 1]->RunAll();
  }
  for (uint32_t server = 0; server < count(); ++server) EndJournal(server);
}

void Servers::EndFirst(const absl::Status& why) {
  DiskJournal& journal = disks_.of(0).journal();
  journal.Sync(journal.waiting());
  shard_->durability().FailHeldAnswers(why);
}

// Somebody makes space on a full disk, but too late.
void Servers::EndJournal(uint32_t server) {
  DiskJournal& journal = disks_.of(server).journal();
  size_t kept = journal.full() ? 0 : journal.waiting();
  if (kept > 0 && dead() == server) {
    kept = Percent(30) ? 0 : Percent(30) ? kept : Below(static_cast<uint32_t>(kept) + 1);
  }
  journal.End(kept);
  journal.SetFull(false);
}

}  // namespace sluice
