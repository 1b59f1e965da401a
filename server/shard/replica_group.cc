#include "server/shard/replica_group.h"

#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status NotRising(absl::string_view what, uint64_t number, SessionId session,
                       uint64_t latest) {
  return MakeError(
      Reason::kBadArgument,
      absl::StrCat("field ", what, " is ", number, ", and session ", session.value(), " has sent ",
                   latest, " before; with several servers it rises ", "from 1"));
}

bool IsWhole(const absl::optional<HaveReport>& whole) {
  return whole.has_value() && whole->refused.ok();
}

}  // namespace

void ReplicaGroup::Lead(std::vector<ReplicaLink*> links) {
  links_ = std::move(links);
  reports_ = GatheredReports(replicas());
}

void ReplicaGroup::Send(const ReplicaCommand& command) {
  for (ReplicaLink* const link : links_) link->Send(command);
}

// ---- Sessions ----

void ReplicaGroup::Open(SessionId session, const JoinRequest& request) {
  if (links_.empty()) return;
  sessions_.try_emplace(session);
  Send(OpenSession{session, request.role, request.memory_name});
}

void ReplicaGroup::EndSessions(uint64_t ended, absl::FunctionRef<bool(SessionId)> is_alive,
                               Completions* completions) {
  if (std::exchange(ended_, ended) == ended) return;
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    const SessionId session = it->first;
    if (is_alive(session)) {
      ++it;
    } else {
      it = sessions_.erase(it);
      EndSession(session, completions);
    }
  }
}

void ReplicaGroup::EndSession(SessionId session, Completions* completions) {
  sluice::EndSession command = {session};
  for (auto it = pushes_.begin(); it != pushes_.end();) {
    const bool ends = it->second.name.session == session;
    if (ends && IsWhole(it->second.whole)) command.keep.push_back(it->first);
    const bool stays = !ends || IsWhole(it->second.whole);
    it = stays ? std::next(it) : EndEarly(it, absl::OkStatus(), completions);
  }
  Send(command);
}

// With OK, the shard finds out by itself that the push does not count.
ReplicaGroup::Pushes::iterator ReplicaGroup::EndEarly(Pushes::iterator push,
                                                      const absl::Status& why,
                                                      Completions* completions) {
  reports_.Forget(push->first);
  if (push->second.gathered != nullptr) {
    HaveReport end = push->second.own;
    end.refused = why;
    completions->Add([gathered = std::move(push->second.gathered), end] { gathered(end); });
  }
  return pushes_.erase(push);
}

// ---- Pushes ----

absl::Status ReplicaGroup::Begin(const PushName& name) {
  const auto session = sessions_.find(name.session);
  if (session == sessions_.end()) return absl::OkStatus();
  uint32_t& latest = session->second.attempt;
  if (name.attempt <= latest) return NotRising("attempt", name.attempt, name.session, latest);
  latest = name.attempt;
  return absl::OkStatus();
}

void ReplicaGroup::Admit(const AdmitPush& admitted) {
  if (sessions_.count(admitted.name.session) == 0) return;
  reports_.Await(admitted.push);
  pushes_[admitted.push].name = admitted.name;
  Send(admitted);
}

void ReplicaGroup::Pass(const PushName& name) {
  if (sessions_.count(name.session) > 0) Send(DropPush{PushId(), name});
}

void ReplicaGroup::FinishOwn(const HaveReport& own, GatheredCallback whole,
                             Completions* completions) {
  const auto found = pushes_.find(own.push);
  if (found == pushes_.end()) {
    completions->Add([whole = std::move(whole), own] { whole(own); });
    return;
  }
  Push& push = found->second;
  push.own = own;
  push.gathered = std::move(whole);
  if (push.whole.has_value()) {  // another replica has refused its part
    push.whole->bytes += own.bytes;
    Tell(found, completions);
  } else if (stopped()) {
    EndEarly(found, stopped_, completions);
  } else {
    OnReport(0, own, completions);
  }
}

void ReplicaGroup::OnReport(uint32_t replica, const HaveReport& report, Completions* completions) {
  absl::optional<HaveReport> whole = reports_.Take(replica, report);
  if (!whole.has_value()) return;
  const auto push = pushes_.find(report.push);
  if (!whole->refused.ok()) Send(DropPush{report.push, push->second.name});
  push->second.whole = std::move(whole);
  Tell(push, completions);
}

void ReplicaGroup::Tell(Pushes::iterator push, Completions* completions) {
  if (push->second.gathered == nullptr) return;
  completions->Add([gathered = std::move(push->second.gathered), whole = *push->second.whole] {
    gathered(whole);
  });
  push->second.gathered = nullptr;
  if (!IsWhole(push->second.whole)) pushes_.erase(push);
}

bool ReplicaGroup::Cancel(PushId push) {
  const auto found = pushes_.find(push);
  if (found == pushes_.end() || found->second.gathered == nullptr) return false;
  Drop(push);
  return true;
}

void ReplicaGroup::Drop(PushId push) {
  const auto dropped = pushes_.extract(push);
  if (dropped.empty()) return;
  reports_.Forget(push);
  const absl::optional<HaveReport>& whole = dropped.mapped().whole;
  const bool told = whole.has_value() && !whole->refused.ok();
  if (!told) Send(DropPush{push, dropped.mapped().name});
}

void ReplicaGroup::Add(PushId push, const GradientWeight& weight, bool last) {
  pushes_.erase(push);
  Send(AddPush{push, weight, last});
}

void ReplicaGroup::TakeParameters(PushId push, Step step) {
  pushes_.erase(push);
  Send(sluice::TakeParameters{push, step});
}

// ---- Pulls ----

absl::Status ReplicaGroup::BeginPull(const PullName& pull) {
  const auto session = sessions_.find(pull.session);
  if (session == sessions_.end()) return absl::OkStatus();
  uint64_t& latest = session->second.pull;
  if (pull.number <= latest) return NotRising("number", pull.number, pull.session, latest);
  const uint64_t before = std::exchange(latest, pull.number);
  if (before > 0) Send(sluice::DropPull{{pull.session, before}});
  return absl::OkStatus();
}

void ReplicaGroup::Release(const PullName& pull, const PullHeader& header) {
  if (sessions_.count(pull.session) > 0) Send(ReleasePull{pull, header});
}

void ReplicaGroup::DropPull(const PullName& pull) {
  if (sessions_.count(pull.session) > 0) Send(sluice::DropPull{pull});
}

// ---- The end ----

void ReplicaGroup::Stop(const absl::Status& why, Completions* completions) {
  stopped_ = why;
  for (auto it = pushes_.begin(); it != pushes_.end();) {
    const bool gathers = it->second.gathered != nullptr;
    it = gathers ? EndEarly(it, why, completions) : std::next(it);
  }
}

void ReplicaGroup::End(int exit_code) {
  Send(EndJob{exit_code});
  links_.clear();
}

}  // namespace sluice
