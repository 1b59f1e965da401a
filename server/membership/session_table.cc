#include "server/membership/session_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

// Whether `later` is of the same process as `earlier`, and no other one had the name in between:
// then the answers were discarded, and the process may have begun to count its pushes anew.
bool GoesOn(const SessionRecord& earlier, const SessionRecord& later) {
  return earlier.process_nonce == later.process_nonce && earlier.replaced == later.replaced &&
         earlier.last_sequence <= later.last_sequence;
}

}  // namespace

void SessionTable::Restore(const std::vector<SessionRecord>& workers, bool forgot_workers,
                           Step step, absl::Time now) {
  restored_ = true;
  forgot_workers_ = forgot_workers;
  for (const SessionRecord& worker : workers) RestoreWorker(worker, step, now);
}

void SessionTable::RestoreWorker(const SessionRecord& worker, Step step, absl::Time now) {
  SessionRecord& record = records_[worker.worker];
  EndSession(record);
  SessionRecord later = worker;
  if (GoesOn(record, worker)) {
    later.answers.insert(record.answers.begin(), record.answers.end());
    while (later.answers.size() > SessionRecord::kStoredAnswers) {
      later.answers.erase(later.answers.begin());
    }
  }
  record = std::move(later);
  record.joined = false;
  record.active_from = step;
  record.last_seen = now;
  if (record.alive()) {
    // No worker knows this session. It lets the lease end.
    last_session_ = last_session_.Next();
    record.session = last_session_;
    by_session_.emplace(record.session, &record);
  }
  census_.Count(record);
}

std::vector<uint64_t> SessionTable::EndLaunch(uint32_t workers) {
  std::vector<uint64_t> pushes(workers);
  for (auto it = records_.begin(); it != records_.end();) {
    SessionRecord& record = it->second;
    // One that joined beyond the launched number shares the part of another.
    uint64_t& of_part = pushes[record.index % workers];
    of_part = std::max(of_part, record.pushes_in_launch());
    record.pushes_in_earlier_launches += record.pushes_in_launch();
    it = record.presence == Presence::kLeft ? Forget(it) : std::next(it);
  }
  return pushes;
}

void SessionTable::Change(const SessionRecord& record,
                          absl::FunctionRef<void(SessionRecord&)> change) {
  const bool alive = record.alive();
  change(Edit(record));
  census_.Count(record);
  changed_.push_back(record.session);
  if (alive && !record.alive()) ++ended_;
}

// For changes of what the census does not count.
SessionRecord& SessionTable::Edit(const SessionRecord& record) {
  return const_cast<SessionRecord&>(record);  // one of records_
}

// Another session replaces that of the record, if it is open.
void SessionTable::EndSession(const SessionRecord& record) {
  if (by_session_.erase(record.session) > 0 && record.alive()) ++ended_;
}

void SessionTable::BeginStep(Step step) {
  step_ = step;
  census_.BeginStep(step);
}

void SessionTable::LeaveOut() {
  for (auto& entry : records_) {
    Change(entry.second, [this](SessionRecord& record) { record.LeaveOut(step_); });
  }
}

std::vector<SessionRecord> SessionTable::Parts() const {
  std::vector<SessionRecord> parts;
  for (const SessionRecord* record : census_.of_step()) {
    SessionRecord part = record->OnlyOf(step_);
    if (part.role == SessionRole::kObserver) {
      // The journal knows workers only. It must know that this name's earlier process was replaced.
      part.role = SessionRole::kWorker;
      part.presence = Presence::kEvicted;
    }
    parts.push_back(std::move(part));
  }
  std::sort(parts.begin(), parts.end(),
            [](const SessionRecord& a, const SessionRecord& b) { return a.worker < b.worker; });
  return parts;
}

const SessionRecord* SessionTable::FindOpen(SessionId session) const {
  const auto it = by_session_.find(session);
  return it != by_session_.end() && it->second->alive() ? it->second : nullptr;
}

absl::StatusOr<const SessionRecord*> SessionTable::Find(SessionId session) const {
  const SessionRecord* const open = FindOpen(session);
  if (open != nullptr) return open;
  return MakeError(Reason::kUnknownSession,
                   absl::StrCat("session ", session.value(),
                                " is not open: it ended, or its worker joined again; join anew"));
}

absl::StatusOr<const SessionRecord*> SessionTable::FindWorker(SessionId session) const {
  const auto record = Find(session);
  if (!record.ok() || (*record)->role == SessionRole::kWorker) return record;
  return MakeError(Reason::kNotAWorker,
                   absl::StrCat(Shown((*record)->worker),
                                " joined as an observer, which may only pull; join as a worker"));
}

const SessionRecord* SessionTable::FindAlive(const std::string& worker) const {
  const auto it = records_.find(worker);
  return it != records_.end() && it->second.alive() ? &it->second : nullptr;
}

std::vector<SessionId> SessionTable::SilentSince(absl::Time deadline) const {
  std::vector<SessionId> silent;
  for (const auto& entry : records_) {
    const SessionRecord& record = entry.second;
    if (record.alive() && record.last_seen <= deadline) silent.push_back(record.session);
  }
  return silent;
}

absl::Status SessionTable::NoteSeen(SessionId session, absl::Time now) {
  const auto record = Find(session);
  if (!record.ok()) return record.status();
  if ((*record)->presence == Presence::kPresent) Edit(**record).last_seen = now;
  return absl::OkStatus();
}

void SessionTable::NoteServed(SessionId session, absl::Time begin, absl::Time end) {
  const auto record = Find(session);
  if (record.ok()) Edit(**record).served.Add(begin, end);
}

std::vector<SessionId> SessionTable::Holders(absl::optional<uint64_t> slowest) const {
  std::vector<SessionId> holders;
  for (const auto& entry : records_) {
    const SessionRecord& record = entry.second;
    const bool slow = record.IsMemberOf(step_) && !record.excused && record.clock == slowest;
    if (slowest.has_value() ? slow : record.IsMissingFrom(step_)) holders.push_back(record.session);
  }
  return holders;
}

bool SessionTable::HasContributed(const std::string& worker) const {
  const auto it = records_.find(worker);
  return it != records_.end() && it->second.contributed == step_;
}

std::vector<std::string> SessionTable::Contributors(size_t limit) const {
  std::vector<std::string> names;
  for (const auto& entry : records_) {
    if (names.size() == limit) break;
    if (entry.second.contributed == step_) names.push_back(entry.first);
  }
  return names;
}

bool SessionTable::AnyMayContinue(SessionRole role, absl::Time now) const {
  if (census_.open(role) > 0) return true;
  return std::any_of(records_.begin(), records_.end(), [role, now](const auto& entry) {
    return entry.second.role == role && entry.second.MayContinue(now);
  });
}

bool SessionTable::AnyWorkerLeft() const {
  return std::any_of(records_.begin(), records_.end(), [](const auto& entry) {
    return entry.second.role == SessionRole::kWorker && entry.second.presence == Presence::kLeft;
  });
}

bool SessionTable::AllAreGoneSince(absl::Time deadline) const {
  if (census_.open(SessionRole::kWorker) > 0 || census_.known(SessionRole::kWorker) == 0)
    return false;
  return std::all_of(records_.begin(), records_.end(), [deadline](const auto& entry) {
    const SessionRecord& record = entry.second;
    return record.role != SessionRole::kWorker || !record.joined || record.last_seen <= deadline;
  });
}

bool SessionTable::HasObserved(const std::string& observer) const {
  const auto it = records_.find(observer);
  return it != records_.end() && it->second.role == SessionRole::kObserver && it->second.joined;
}

std::vector<std::string> SessionTable::Observers() const {
  std::vector<std::string> names;
  for (const auto& [name, record] : records_) {
    if (record.role == SessionRole::kObserver && record.alive()) names.push_back(name);
  }
  return names;
}

uint64_t SessionTable::SlowestOfOthers(const SessionRecord& record) {
  census_.Forget(record);
  const uint64_t slowest = census_.slowest_clock();
  census_.Count(record);
  return slowest;
}

void SessionTable::Readmit(const SessionRecord& record) {
  if (!record.excused) return;
  const uint64_t slowest = SlowestOfOthers(record);
  Change(record, [slowest](SessionRecord& readmitted) {
    readmitted.clock = std::max(readmitted.clock, slowest);
    readmitted.excused = false;
  });
}

void SessionTable::ResetClocks() {
  for (auto& entry : records_) {
    Change(entry.second, [](SessionRecord& record) { record.clock = 0; });
  }
}

std::vector<SessionRecord> SessionTable::Records() const {
  std::vector<SessionRecord> records;
  for (const auto& entry : records_) records.push_back(entry.second);
  return records;
}

std::vector<SessionRecord> SessionTable::WorkersAfter(const std::string& name, size_t most) const {
  std::vector<SessionRecord> workers;
  for (auto it = records_.upper_bound(name); it != records_.end() && workers.size() < most; ++it) {
    if (it->second.role == SessionRole::kWorker) workers.push_back(it->second);
  }
  return workers;
}

ObserverPlaces SessionTable::PlacesFor(const std::string& observer) const {
  ObserverPlaces places;
  for (const auto& entry : records_) {
    const bool same = entry.first == observer;
    const bool observes = entry.second.role == SessionRole::kObserver;
    if (same && !observes) places.is_workers = true;
    if (!observes || !entry.second.alive()) continue;
    if (same) places.holder = entry.second.process_nonce;
    if (!same) ++places.others;
  }
  return places;
}

std::vector<JobListener> SessionTable::Listeners() const {
  std::vector<JobListener> listeners;
  for (const auto& entry : records_) {
    const SessionRecord& record = entry.second;
    if (record.presence == Presence::kPresent && record.listener)
      listeners.push_back(record.listener);
  }
  return listeners;
}

}  // namespace sluice
