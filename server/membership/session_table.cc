#include "server/membership/session_table.h"

#include <algorithm>
#include <iterator>
#include <set>
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

// The parts of the data that have another worker, or are done: worker i has part i % `launched`.
std::set<uint32_t> PartsOfOthers(const std::map<std::string, SessionRecord>& records,
                                 const SessionRecord& claimant, uint32_t launched) {
  std::set<uint32_t> parts;
  for (const auto& entry : records) {
    const SessionRecord& record = entry.second;
    if (&record == &claimant || record.role != SessionRole::kWorker) continue;
    const bool works = record.joined && record.presence == Presence::kPresent;
    const bool done = record.presence == Presence::kLeft && record.pushes_in_launch() > 0;
    if (works || done) parts.insert(record.index % launched);
  }
  return parts;
}

// Whether another worker has the record's part of the data, while nobody has another part: fewer
// workers were launched than before.
bool SharesPart(const std::map<std::string, SessionRecord>& records, const SessionRecord& record,
                uint32_t launched) {
  const std::set<uint32_t> parts = PartsOfOthers(records, record, launched);
  return parts.count(record.index % launched) > 0 && parts.size() < launched;
}

// The lowest index that no other worker has. One whose part of the data nobody has comes before the
// others.
uint32_t FreeIndex(const std::map<std::string, SessionRecord>& records,
                   const SessionRecord& claimant, uint32_t launched) {
  std::set<uint32_t> taken;
  for (const auto& entry : records) {
    const SessionRecord& record = entry.second;
    if (&record == &claimant || record.role != SessionRole::kWorker) continue;
    if (record.alive()) taken.insert(record.index);
  }
  const std::set<uint32_t> parts = PartsOfOthers(records, claimant, launched);
  const bool all = parts.size() == launched;
  uint32_t index = 0;
  while (taken.count(index) > 0 || (!all && parts.count(index % launched) > 0)) ++index;
  return index;
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

uint32_t SessionTable::CountDone() const {
  std::map<uint32_t, const SessionRecord*> latest;
  for (const auto& entry : records_) {
    const SessionRecord& record = entry.second;
    if (record.role != SessionRole::kWorker || !record.joined) continue;
    const SessionRecord*& last = latest.emplace(record.index, &record).first->second;
    if (last->session < record.session) last = &record;
  }
  return static_cast<uint32_t>(std::count_if(latest.begin(), latest.end(), [](const auto& entry) {
    return entry.second->presence == Presence::kLeft;
  }));
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

// ---- Sessions that begin ----

absl::StatusOr<const SessionRecord*> SessionTable::Open(const JoinRequest& request,
                                                        Step active_from, absl::Time now,
                                                        bool catches_up) {
  const bool returns = Knows(request);
  auto it = records_.find(request.worker);
  if (returns && it->second.banned) {
    return MakeError(Reason::kEvicted,
                     absl::StrCat(Shown(request.worker),
                                  " was evicted by the server's operator; start a new process"));
  }
  // The order of ranks must not change while a step is under way. A new process under a name of an
  // earlier incarnation is part of none yet.
  const bool keeps_index =
      it != records_.end() && it->second.alive() && it->second.role == request.role &&
      (returns || it->second.joined || !SharesPart(records_, it->second, launched_));
  if (!(returns && keeps_index)) {  // otherwise what it asks for does not matter
    const absl::Status place = CheckIndex(request);
    if (!place.ok()) return place;
  }
  if (it == records_.end()) {
    const absl::Status forgotten = ForgetOneRecord(active_from);
    if (!forgotten.ok()) return forgotten;
    it = records_.emplace(request.worker, SessionRecord()).first;
  }
  SessionRecord& record = it->second;
  EndSession(record);
  const bool keeps_place = returns && keeps_index;
  const uint32_t index = keeps_index ? record.index : FreeIndex(records_, record, launched_);
  if (!returns) record = SucceedTo(record);
  // A late worker must not make the others wait for it to catch up.
  if (!keeps_place && catches_up) record.clock = std::max(record.clock, SlowestOfOthers(record));
  record.excused = false;
  last_session_ = last_session_.Next();
  record.worker = request.worker;
  record.role = request.role;
  record.process_nonce = request.process_nonce;
  record.session = last_session_;
  record.host = request.host;
  record.pid = request.pid;
  record.push_encoding = request.push_encoding;
  record.pull_encoding = request.pull_encoding;
  record.version = request.version;
  const uint32_t wanted = keeps_place ? index : request.index.value_or(index);
  record.index = request.role == SessionRole::kWorker ? wanted : 0;
  record.presence = Presence::kPresent;
  record.joined = true;
  record.failure.clear();
  record.last_seen = now;
  if (!keeps_place) record.active_from = active_from;
  by_session_.emplace(record.session, &record);
  census_.Count(record);
  return &record;
}

// The record with which another process of that name begins.
SessionRecord SessionTable::SucceedTo(const SessionRecord& earlier) {
  SessionRecord successor = earlier.Successor();
  if (successor.replaced.size() > SessionRecord::kStoredProcesses) {
    successor.replaced.erase(successor.replaced.begin());
    forgot_workers_ = true;
  }
  return successor;
}

bool SessionTable::Knows(const JoinRequest& request) const {
  const auto it = records_.find(request.worker);
  return it != records_.end() && it->second.process_nonce == request.process_nonce;
}

bool SessionTable::Remembers(const JoinRequest& request) const {
  if (Knows(request)) return true;
  const auto it = records_.find(request.worker);
  const bool replaced = it != records_.end() && it->second.HasReplaced(request.process_nonce);
  return restored_ && !forgot_workers_ && !replaced;
}

bool SessionTable::TakesOver(const JoinRequest& request) const {
  const auto it = records_.find(request.worker);
  return it != records_.end() && request.role == SessionRole::kWorker &&
         it->second.IsMissingFrom(step_) &&
         request.index.value_or(it->second.index) == it->second.index;
}

// Two workers with one index would train on the same part of the data.
absl::Status SessionTable::CheckIndex(const JoinRequest& request) const {
  if (!request.index.has_value() || request.role != SessionRole::kWorker) return absl::OkStatus();
  if (*request.index >= max_sessions_) {
    return MakeError(Reason::kBadArgument, absl::StrCat("field index is ", *request.index,
                                                        ", expected less than ", max_sessions_,
                                                        ", the limit of workers; number the "
                                                        "workers from 0, or raise --max-workers"));
  }
  for (const auto& entry : records_) {
    const SessionRecord& record = entry.second;
    const bool other_worker = entry.first != request.worker && record.role == SessionRole::kWorker;
    if (!other_worker || !record.alive() || record.index != *request.index) continue;
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("field index is ", *request.index, ", which is the index of ",
                                  Shown(entry.first),
                                  "; give each worker an index of its own, "
                                  "or none"));
  }
  return absl::OkStatus();
}

absl::Status SessionTable::ForgetOneRecord(Step step) {
  if (records_.size() < max_sessions_) return absl::OkStatus();
  const auto gone = FindForgettable(step);
  if (gone == records_.end()) {
    return MakeError(Reason::kTooManyWorkers,
                     absl::StrCat("the server has ", records_.size(),
                                  " workers, its limit; raise it with --max-workers"));
  }
  Forget(gone);
  return absl::OkStatus();
}

std::map<std::string, SessionRecord>::iterator SessionTable::Forget(
    std::map<std::string, SessionRecord>::iterator gone) {
  if (gone->second.MayBeRepeated()) forgot_workers_ = true;
  by_session_.erase(gone->second.session);
  census_.Forget(gone->second);
  return records_.erase(gone);
}

// A worker that left has no push to repeat. An evicted one that returns is told, by
// Welcome.resumed, that its record is gone.
std::map<std::string, SessionRecord>::iterator SessionTable::FindForgettable(Step step) {
  auto found = records_.end();
  for (auto it = records_.begin(); it != records_.end(); ++it) {
    const SessionRecord& record = it->second;
    if (record.presence == Presence::kLeft) return it;
    if (record.alive() || record.banned) continue;
    // A repeat of its push would count twice. The new session may take part one step later.
    const bool is_part = !record.answers.empty() &&
                         record.answers.rbegin()->second.part_of.has_value() &&
                         record.answers.rbegin()->second.part_of->Next() >= step;
    if (is_part) continue;
    if (found == records_.end() || record.last_seen < found->second.last_seen) found = it;
  }
  return found;
}

}  // namespace sluice
