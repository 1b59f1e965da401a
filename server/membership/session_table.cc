#include "server/membership/session_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

void SessionTable::Restore(const std::vector<SessionRecord>& workers, bool forgot_workers,
                           Step step, absl::Time now) {
  restored_ = true;
  forgot_workers_ = forgot_workers;
  for (const SessionRecord& worker : workers) RestoreWorker(worker, step, now);
}

void SessionTable::RestoreWorker(const SessionRecord& worker, Step step, absl::Time now) {
  SessionRecord& record = records_[worker.worker];
  by_session_.erase(record.session);
  SessionRecord later = worker;
  if (record.process_nonce == worker.process_nonce) {
    later.answers.insert(record.answers.begin(), record.answers.end());
    while (later.answers.size() > SessionRecord::kStoredAnswers) {
      later.answers.erase(later.answers.begin());
    }
  }
  record = std::move(later);
  record.joined = false;
  record.active_from = step;
  record.last_seen = now;
  if (!record.alive()) return;
  // No worker knows this session. It lets the lease end.
  last_session_ = last_session_.Next();
  record.session = last_session_;
  by_session_.emplace(record.session, &record);
}

bool SessionTable::AllArePartOf(Step step) const {
  return std::all_of(records_.begin(), records_.end(), [step](const auto& entry) {
    const SessionRecord& record = entry.second;
    if (record.role != SessionRole::kWorker || !record.alive()) return true;
    return record.IsPartOf(step);
  });
}

void SessionTable::LeaveOut(Step step) {
  for (auto& entry : records_) entry.second.LeaveOut(step);
}

std::vector<SessionRecord> SessionTable::PartsOf(Step step) const {
  std::vector<SessionRecord> parts;
  for (const auto& entry : records_) {
    SessionRecord only = entry.second.OnlyOf(step);
    if (!only.answers.empty()) parts.push_back(std::move(only));
  }
  return parts;
}

SessionRecord* SessionTable::FindOpen(SessionId session) const {
  const auto it = by_session_.find(session);
  return it != by_session_.end() && it->second->alive() ? it->second : nullptr;
}

absl::StatusOr<SessionRecord*> SessionTable::Find(SessionId session) {
  SessionRecord* const open = FindOpen(session);
  if (open != nullptr) return open;
  return MakeError(Reason::kUnknownSession,
                   absl::StrCat("session ", session.value(),
                                " is not open: it ended, or its worker joined again; join anew"));
}

absl::StatusOr<const SessionRecord*> SessionTable::Find(SessionId session) const {
  return const_cast<SessionTable*>(this)->Find(session);
}

absl::StatusOr<SessionRecord*> SessionTable::FindWorker(SessionId session) {
  const auto record = Find(session);
  if (!record.ok() || (*record)->role == SessionRole::kWorker) return record;
  return MakeError(Reason::kNotAWorker,
                   absl::StrCat(Shown((*record)->worker),
                                " joined as an observer, which may only pull; join as a worker"));
}

SessionRecord* SessionTable::FindAlive(const std::string& worker) {
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

void SessionTable::NoteServed(SessionId session, absl::Time begin, absl::Time end) {
  const auto record = Find(session);
  if (record.ok()) (*record)->served.Add(begin, end);
}

std::vector<SessionId> SessionTable::Holders(Step step, absl::optional<uint64_t> slowest) const {
  std::vector<SessionId> holders;
  for (const auto& entry : records_) {
    const SessionRecord& record = entry.second;
    const bool slow = record.IsMemberOf(step) && !record.excused && record.clock == slowest;
    if (slowest.has_value() ? slow : record.IsMissingFrom(step)) holders.push_back(record.session);
  }
  return holders;
}

bool SessionTable::HasContributed(const std::string& worker, Step step) const {
  const auto it = records_.find(worker);
  return it != records_.end() && it->second.contributed == step;
}

std::vector<std::string> SessionTable::Contributors(Step step, size_t limit) const {
  std::vector<std::string> names;
  for (const auto& entry : records_) {
    if (names.size() == limit) break;
    if (entry.second.contributed == step) names.push_back(entry.first);
  }
  return names;
}

bool SessionTable::AnyMayContinue(SessionRole role, absl::Time now) const {
  return std::any_of(records_.begin(), records_.end(), [role, now](const auto& entry) {
    return entry.second.role == role && entry.second.MayContinue(now);
  });
}

uint32_t SessionTable::CountAlive(SessionRole role) const {
  return Count([role](const SessionRecord& r) { return r.role == role && r.alive(); });
}

uint32_t SessionTable::CountKnown(SessionRole role) const {
  return Count(
      [role](const SessionRecord& r) { return r.role == role && (r.alive() || r.joined); });
}

WorkerCounts SessionTable::CountWorkers() const {
  WorkerCounts counts;
  for (const auto& entry : records_) {
    const SessionRecord& record = entry.second;
    if (record.role != SessionRole::kWorker || !record.joined) continue;
    if (record.presence == Presence::kPresent) ++counts.connected;
    if (record.alive()) ++counts.open;
    if (record.presence == Presence::kEvicted && !record.banned) ++counts.evicted;
  }
  return counts;
}

uint32_t SessionTable::CountMembers(Step step) const {
  return Count([step](const SessionRecord& r) { return r.IsMemberOf(step); });
}

uint32_t SessionTable::CountMissing(Step step) const {
  return Count([step](const SessionRecord& r) { return r.IsMissingFrom(step); });
}

template <typename Predicate>
uint32_t SessionTable::Count(const Predicate& predicate) const {
  return std::count_if(records_.begin(), records_.end(),
                       [&predicate](const auto& entry) { return predicate(entry.second); });
}

absl::optional<Rank> SessionTable::FirstMissing(Step step) const {
  absl::optional<Rank> first;
  for (const auto& entry : records_) {
    const SessionRecord& record = entry.second;
    if (!record.IsMissingFrom(step)) continue;
    if (!first.has_value() || record.rank() < *first) first = record.rank();
  }
  return first;
}

uint64_t SessionTable::SlowestClock(const SessionRecord* except) const {
  absl::optional<uint64_t> slowest;
  absl::optional<uint64_t> fastest_excused;  // for when there are no others
  for (const auto& entry : records_) {
    const SessionRecord& record = entry.second;
    if (record.role != SessionRole::kWorker || !record.alive() || &record == except) continue;
    if (record.excused) {
      fastest_excused = std::max(fastest_excused.value_or(record.clock), record.clock);
    } else {
      slowest = std::min(slowest.value_or(record.clock), record.clock);
    }
  }
  return slowest.value_or(fastest_excused.value_or(0));
}

void SessionTable::Readmit(SessionRecord& record) {
  if (!record.excused) return;
  record.clock = std::max(record.clock, SlowestClock(&record));
  record.excused = false;
}

void SessionTable::ResetClocks() {
  for (auto& entry : records_) entry.second.clock = 0;
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
