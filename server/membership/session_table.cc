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
std::set<uint32_t> PartsOfOthers(const SessionRecords& records, const SessionRecord& claimant,
                                 uint32_t launched) {
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
bool SharesPart(const SessionRecords& records, const SessionRecord& record, uint32_t launched) {
  const std::set<uint32_t> parts = PartsOfOthers(records, record, launched);
  return parts.count(record.index % launched) > 0 && parts.size() < launched;
}

// The lowest index that no other worker has. One whose part of the data nobody has comes before the
// others.
uint32_t FreeIndex(const SessionRecords& records, const SessionRecord& claimant,
                   uint32_t launched) {
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

// Two workers with one index would train on the same part of the data.
absl::Status CheckIndex(const SessionRecords& records, const JoinRequest& request,
                        uint32_t max_sessions) {
  if (!request.index.has_value() || request.role != SessionRole::kWorker) return absl::OkStatus();
  if (*request.index >= max_sessions) {
    return MakeError(Reason::kBadArgument, absl::StrCat("field index is ", *request.index,
                                                        ", expected less than ", max_sessions,
                                                        ", the limit of workers; number the "
                                                        "workers from 0, or raise --max-workers"));
  }
  for (const auto& entry : records) {
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

// A worker that left has no push to repeat. An evicted one that returns is told, by
// Welcome.resumed, that its record is gone.
SessionRecords::const_iterator FindForgettable(const SessionRecords& records, Step step) {
  auto found = records.end();
  for (auto it = records.begin(); it != records.end(); ++it) {
    const SessionRecord& record = it->second;
    if (record.presence == Presence::kLeft) return it;
    if (record.alive() || record.banned) continue;
    // A repeat of its push would count twice. The new session may take part one step later.
    const bool is_part = !record.answers.empty() &&
                         record.answers.rbegin()->second.part_of.has_value() &&
                         record.answers.rbegin()->second.part_of->Next() >= step;
    if (is_part) continue;
    if (found == records.end() || record.last_seen < found->second.last_seen) found = it;
  }
  return found;
}

absl::Status FullError(size_t workers) {
  return MakeError(
      Reason::kTooManyWorkers,
      absl::StrCat("the server has ", workers, " workers, its limit; raise it with --max-workers"));
}

void Identify(const JoinRequest& request, SessionRecord* record) {
  record->worker = request.worker;
  record->role = request.role;
  record->process_nonce = request.process_nonce;
  record->host = request.host;
  record->pid = request.pid;
  record->push_encoding = request.push_encoding;
  record->pull_encoding = request.pull_encoding;
  record->version = request.version;
}

}  // namespace

void SessionTable::Restore(const std::vector<SessionRecord>& workers, bool forgot_workers,
                           Step step, absl::Time now) {
  restored_ = true;
  forgot_workers_ = forgot_workers_ || forgot_workers;
  for (const SessionRecord& worker : workers) {
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

void SessionTable::ChangeAll(absl::FunctionRef<void(SessionRecord&)> change) {
  for (const auto& entry : records_) Change(entry.second, change);
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

// ---- Sessions that begin ----

absl::StatusOr<const SessionRecord*> SessionTable::Open(const JoinRequest& request,
                                                        Step active_from, absl::Time now,
                                                        bool catches_up) {
  auto it = records_.find(request.worker);
  const bool returns = it != records_.end() && it->second.process_nonce == request.process_nonce;
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
    const absl::Status place = CheckIndex(records_, request, max_sessions_);
    if (!place.ok()) return place;
  }
  if (it == records_.end()) {
    if (records_.size() >= max_sessions_) {
      const auto gone = FindForgettable(records_, active_from);
      if (gone == records_.end()) return FullError(records_.size());
      Forget(gone);
    }
    it = records_.emplace(request.worker, SessionRecord()).first;
  }
  SessionRecord& record = it->second;
  EndSession(record);
  const bool keeps_place = returns && keeps_index;
  const uint32_t index = keeps_index ? record.index : FreeIndex(records_, record, launched_);
  if (!returns) record = record.Successor();
  if (record.replaced.size() > SessionRecord::kStoredProcesses) {
    record.replaced.erase(record.replaced.begin());
    forgot_workers_ = true;
  }
  // A late worker must not make the others wait for it to catch up.
  census_.Forget(record);
  if (!keeps_place && catches_up) record.clock = std::max(record.clock, census_.slowest_clock());
  record.excused = false;
  last_session_ = last_session_.Next();
  record.session = last_session_;
  Identify(request, &record);
  const uint32_t wanted = keeps_place ? index : request.index.value_or(index);
  record.index = request.role == SessionRole::kWorker ? wanted : 0;
  record.presence = Presence::kPresent;
  record.joined = true;
  record.failure.clear();
  record.push_interval = absl::ZeroDuration();
  record.last_seen = now;
  if (!keeps_place) record.active_from = active_from;
  by_session_.emplace(record.session, &record);
  census_.Count(record);
  return &record;
}

bool SessionTable::Remembers(const JoinRequest& request) const {
  const auto it = records_.find(request.worker);
  const bool known = it != records_.end();
  if (known && it->second.process_nonce == request.process_nonce) return true;
  const bool replaced = known && it->second.HasReplaced(request.process_nonce);
  return restored_ && !forgot_workers_ && !replaced;
}

SessionRecords::iterator SessionTable::Forget(SessionRecords::const_iterator gone) {
  if (gone->second.MayBeRepeated()) forgot_workers_ = true;
  by_session_.erase(gone->second.session);
  census_.Forget(gone->second);
  return records_.erase(gone);
}

}  // namespace sluice
