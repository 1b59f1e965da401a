#include "server/replica/worker_calls.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

PushName NameOf(const PushHeader& header) {
  return {header.session, header.sequence, header.attempt};
}
PushName LastPushOf(SessionId session) {
  return {session, Sequence(kNoLimit), std::numeric_limits<uint32_t>::max()};
}
PullName LastPullOf(SessionId session) { return {session, kNoLimit}; }

bool Always(bool& /*old*/) { return true; }
bool IfOld(bool& old) { return std::exchange(old, true); }

absl::Status Refused(SessionId session, absl::string_view why) {
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("this call of session ", session.value(), " ", why,
                                "; fields attempt and number rise within a session"));
}

// The worker hears from the leader what became of its push, so no worker waits for this.
absl::Status PushDropped() { return absl::CancelledError("the push was answered by the leader"); }

absl::Status PullDropped() {
  return absl::CancelledError(
      "the leader has dropped the pull, because its worker asked again "
      "or its call broke off; pull again with a higher number");
}

}  // namespace

// ---- Pushes ----

PushId WorkerCalls::BeginPush(const PushHeader& header, StreamCallback start,
                              std::function<void()> cancel) {
  const PushName name = NameOf(header);
  absl::StatusOr<std::unique_ptr<PendingPush>> push;
  {
    absl::MutexLock lock(&mu_);
    Session& session = sessions_[name.session];
    const auto known = session.pushes.find(name);
    const bool in_use = known != session.pushes.end();
    if (in_use && known->second.phase == PushPhase::kAwaitsStream) {
      known->second.header = header;
      known->second.cancel = std::move(cancel);
      push = Arrive(known->second);
    } else {
      absl::Status why = WhyNever(name);
      if (why.ok()) why = CheckMayWait(name.session, session.WaitingPushes(), in_use);
      if (why.ok()) {
        const PushId id(++last_id_);
        session.pushes[name] = {PushPhase::kAwaitsLog, header, std::move(start),
                                std::move(cancel),     {},     id};
        waiting_pushes_.emplace(id, name);
        unknown_ += session.open ? 0 : 1;
        return id;
      }
      ForgetIfEmpty(name.session);
      push = why;
    }
  }
  start(std::move(push));
  return PushId();
}

bool WorkerCalls::CancelPush(PushId id) {
  Push cancelled;  // freed without the mutex
  absl::MutexLock lock(&mu_);
  const auto waiting = waiting_pushes_.extract(id);
  if (waiting.empty()) return false;
  const PushName& name = waiting.mapped();
  Session& session = sessions_[name.session];
  cancelled = std::move(session.pushes.extract(name).mapped());
  NoLongerWaits(session);
  ForgetIfEmpty(name.session);
  return true;
}

absl::Status WorkerCalls::EndPush(std::unique_ptr<PendingPush> push, const absl::Status& fault) {
  const PushName name = NameOf(push->header());
  bool measures = false;
  {
    absl::MutexLock lock(&mu_);
    const Push* const arriving = FindArriving(name, push->id());
    measures = arriving != nullptr && arriving->admitted.measures_norm;
  }
  const HaveReport have = stripe_.End(*push, fault, measures);
  {
    absl::MutexLock lock(&mu_);
    if (FindArriving(name, push->id()) == nullptr) return WhyNever(name);
    sessions_[name.session].pushes.erase(name);
    if (have.refused.ok()) arrived_.Keep(std::move(push));
  }
  push = nullptr;  // if it is refused, its memory is free before others are told
  report_(have);
  return have.refused;
}

WorkerCalls::Push* WorkerCalls::FindArriving(const PushName& name, PushId id) {
  const auto session = sessions_.find(name.session);
  if (session == sessions_.end()) return nullptr;
  const auto push = session->second.pushes.find(name);
  const bool arrives = push != session->second.pushes.end() &&
                       push->second.phase == PushPhase::kArrives &&
                       push->second.admitted.push == id;
  return arrives ? &push->second : nullptr;
}

std::unique_ptr<PendingPush> WorkerCalls::Arrive(Push& push) {
  push.phase = PushPhase::kArrives;
  return stripe_.Begin(push.admitted.push, push.header, std::make_shared<std::atomic<uint64_t>>(0),
                       push.admitted.begins_sum);
}

void WorkerCalls::Do(const OpenSession& command) {
  absl::MutexLock lock(&mu_);
  if (ended_.Contains(command.session)) return;
  Session& session = sessions_[command.session];
  if (session.open) return;
  unknown_ -= session.WaitingPushes() + session.WaitingPulls();
  session.open = true;
}

void WorkerCalls::Do(const AdmitPush& command) {
  StreamCallback start;
  std::unique_ptr<PendingPush> arrives;
  {
    CompletingLock lock(&mu_);
    if (ended_.Contains(command.name.session)) return;
    Session& session = sessions_[command.name.session];
    Push& push = session.pushes[command.name];
    const bool waits = push.id != PushId();
    push.admitted = command;
    push.phase = PushPhase::kAwaitsStream;
    if (waits) {
      waiting_pushes_.erase(std::exchange(push.id, PushId()));
      NoLongerWaits(session);
      start = std::exchange(push.start, nullptr);
      arrives = Arrive(push);
    }
    GoOnTo(command.name, lock.completions());
  }
  if (start) start(std::move(arrives));
}

void WorkerCalls::Do(const DropPush& command) {
  Completions completions;
  std::unique_ptr<PendingPush> dropped;
  {
    absl::MutexLock lock(&mu_);
    dropped = arrived_.Drop(command.push);
    GoOnTo(command.name, &completions);
    const auto session = sessions_.find(command.name.session);
    if (session == sessions_.end()) return;
    const auto push = session->second.pushes.find(command.name);
    if (push != session->second.pushes.end() && (push->second.phase == PushPhase::kAwaitsStream ||
                                                 push->second.admitted.push == command.push)) {
      if (push->second.cancel) completions.Add(std::move(push->second.cancel));
      session->second.pushes.erase(push);
    }
  }
  dropped = nullptr;  // without the mutex; its memory is free before others are told
  completions.Run();
}

// The streams that wait with this or a lower name end.
void WorkerCalls::GoOnTo(const PushName& name, Completions* completions) {
  if (ended_.Contains(name.session)) return;
  Session& session = sessions_[name.session];
  session.told = std::max(session.told, name);
  EndPushes(session, name, PushDropped(), Always, completions);
}

void WorkerCalls::EndPushes(Session& session, const PushName& last, const absl::Status& why,
                            Ends ends, Completions* completions) {
  const auto end = session.pushes.upper_bound(last);
  for (auto it = session.pushes.begin(); it != end;) {
    const auto push = it++;
    if (push->second.phase != PushPhase::kAwaitsLog || !ends(push->second.old)) continue;
    waiting_pushes_.erase(push->second.id);
    NoLongerWaits(session);
    completions->Add([start = std::move(push->second.start), why] { start(why); });
    session.pushes.erase(push);
  }
}

// ---- Pulls ----

PullId WorkerCalls::Pull(const PullName& name, PullCallback done) {
  absl::StatusOr<PullResult> result;
  {
    absl::MutexLock lock(&mu_);
    Session& session = sessions_[name.session];
    const auto known = session.pulls.find(name.number);
    const bool in_use = known != session.pulls.end();
    if (in_use && known->second.done == nullptr) {
      result = std::move(known->second.result);
      session.pulls.erase(known);
    } else {
      absl::Status why = WhyNever(name);
      if (why.ok()) why = CheckMayWait(name.session, session.WaitingPulls(), in_use);
      if (why.ok()) {
        const PullId id(++last_id_);
        session.pulls[name.number] = {std::move(done), {}, id};
        waiting_pulls_.emplace(id, name);
        unknown_ += session.open ? 0 : 1;
        return id;
      }
      ForgetIfEmpty(name.session);
      result = why;
    }
  }
  done(result);
  return PullId();
}

bool WorkerCalls::CancelPull(PullId id) {
  WaitingPull cancelled;  // freed without the mutex
  absl::MutexLock lock(&mu_);
  const auto waiting = waiting_pulls_.extract(id);
  if (waiting.empty()) return false;
  const PullName& name = waiting.mapped();
  Session& session = sessions_[name.session];
  cancelled = std::move(session.pulls.extract(name.number).mapped());
  NoLongerWaits(session);
  ForgetIfEmpty(name.session);
  return true;
}

void WorkerCalls::Do(const ReleasePull& command) {
  PullCallback done;
  PullResult result = ReleasedPull(command.header, stripe_.latest());
  {
    absl::MutexLock lock(&mu_);
    if (ended_.Contains(command.pull.session)) return;
    Session& session = sessions_[command.pull.session];
    WaitingPull& pull = session.pulls[command.pull.number];
    if (pull.done == nullptr) {
      pull.result = std::move(result);
      return;
    }
    waiting_pulls_.erase(pull.id);
    NoLongerWaits(session);
    done = std::move(pull.done);
    session.pulls.erase(command.pull.number);
  }
  done(result);
}

void WorkerCalls::Do(const DropPull& command) {
  std::vector<WaitingPull> dropped;  // freed without the mutex
  CompletingLock lock(&mu_);
  if (ended_.Contains(command.pull.session)) return;
  Session& session = sessions_[command.pull.session];
  session.dropped = std::max(session.dropped, command.pull.number);
  EndPulls(session, command.pull, PullDropped(), Always, lock.completions());
  const auto end = session.pulls.upper_bound(command.pull.number);
  for (auto it = session.pulls.begin(); it != end; it = session.pulls.erase(it)) {
    dropped.push_back(std::move(it->second));
  }
}

void WorkerCalls::EndPulls(Session& session, const PullName& last, const absl::Status& why,
                           Ends ends, Completions* completions) {
  const auto end = session.pulls.upper_bound(last.number);
  for (auto it = session.pulls.begin(); it != end;) {
    const auto pull = it++;
    if (pull->second.done == nullptr || !ends(pull->second.old)) continue;
    waiting_pulls_.erase(pull->second.id);
    NoLongerWaits(session);
    completions->Add([done = std::move(pull->second.done), why] { done(why); });
    session.pulls.erase(pull);
  }
}

// ---- Sessions ----

void WorkerCalls::Do(const EndSession& command) {
  Session ends;                                       // freed without the mutex
  std::vector<std::unique_ptr<PendingPush>> dropped;  // likewise
  CompletingLock lock(&mu_);
  dropped = arrived_.DropSession(command.session, command.keep);
  ended_.Add(command.session);
  const auto session = sessions_.find(command.session);
  if (session == sessions_.end()) return;
  const absl::Status why = SessionHasEnded(command.session);
  EndPushes(session->second, LastPushOf(command.session), why, Always, lock.completions());
  EndPulls(session->second, LastPullOf(command.session), why, Always, lock.completions());
  ends = std::move(session->second);
  sessions_.erase(session);
  for (auto& [name, push] : ends.pushes) {
    if (push.phase != PushPhase::kArrives || !push.cancel) continue;
    lock.completions()->Add(std::move(push.cancel));
  }
}

void WorkerCalls::EndEarlier(SessionId base) {
  CompletingLock lock(&mu_);
  ended_.SetBase(base);
  EndSessions([this](const auto& session)
                  ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return ended_.IsOfEarlier(session.first); },
              Always, lock.completions());
}

void WorkerCalls::EndUnknown() {
  CompletingLock lock(&mu_);
  EndSessions([](const auto& session) { return !session.second.open; }, IfOld, lock.completions());
}

void WorkerCalls::EndSessions(absl::FunctionRef<bool(const Sessions::value_type&)> which, Ends ends,
                              Completions* completions) {
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    const auto one = it++;
    if (!which(*one)) continue;
    const SessionId id = one->first;
    EndPushes(one->second, LastPushOf(id), SessionIsUnknown(id), ends, completions);
    EndPulls(one->second, LastPullOf(id), SessionIsUnknown(id), ends, completions);
    ForgetIfEmpty(id);
  }
}

absl::Status WorkerCalls::CheckOpen(SessionId session) const {
  absl::MutexLock lock(&mu_);
  const absl::Status over = ended_.WhyOver(session);
  if (!over.ok()) return over;
  const auto found = sessions_.find(session);
  if (found != sessions_.end() && found->second.open) return absl::OkStatus();
  return MakeError(Reason::kUnknownSession,
                   absl::StrCat("session ", session.value(), " is not open here; join again"));
}

template <typename Name>
absl::Status WorkerCalls::WhyNever(const Name& name) const {
  const absl::Status over = ended_.WhyOver(name.session);
  const auto session = sessions_.find(name.session);
  return !over.ok() || session == sessions_.end() ? over : session->second.WhyNever(name);
}

absl::Status WorkerCalls::Session::WhyNever(const PushName& push) const {
  return told < push ? absl::OkStatus() : PushDropped();
}

absl::Status WorkerCalls::Session::WhyNever(const PullName& pull) const {
  return dropped < pull.number ? absl::OkStatus() : PullDropped();
}

size_t WorkerCalls::Session::WaitingPushes() const {
  return std::count_if(pushes.begin(), pushes.end(),
                       [](const auto& one) { return one.second.phase == PushPhase::kAwaitsLog; });
}

size_t WorkerCalls::Session::WaitingPulls() const {
  return std::count_if(pulls.begin(), pulls.end(),
                       [](const auto& one) { return one.second.done != nullptr; });
}

absl::Status WorkerCalls::CheckMayWait(SessionId session, size_t waiting, bool in_use) const {
  if (in_use) return Refused(session, "is used by a call that waits");
  if (waiting >= kMostOfSession) return Refused(session, "is one too many");
  const bool open = sessions_.at(session).open;
  return open || unknown_ < kMostUnknown ? absl::OkStatus() : SessionIsUnknown(session);
}

void WorkerCalls::NoLongerWaits(const Session& session) { unknown_ -= session.open ? 0 : 1; }

void WorkerCalls::ForgetIfEmpty(SessionId id) {
  const auto session = sessions_.find(id);
  const Session& known = session->second;
  const bool told = known.open || PushName() < known.told || known.dropped > 0;
  if (!told && known.pushes.empty() && known.pulls.empty()) sessions_.erase(session);
}

}  // namespace sluice
