// The part of SessionTable that opens sessions: which record and which index a joining process
// gets.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "server/membership/session_table.h"

namespace sluice {

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
  // The order of ranks must not change while a step is under way.
  const bool keeps_index =
      it != records_.end() && it->second.alive() && it->second.role == request.role;
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
  const uint32_t index = keeps_index ? record.index : FreeIndex(record);
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

uint32_t SessionTable::FreeIndex(const SessionRecord& claimant) const {
  std::set<uint32_t> taken;
  for (const auto& entry : records_) {
    const SessionRecord& record = entry.second;
    const bool other_worker = &record != &claimant && record.role == SessionRole::kWorker;
    if (other_worker && record.alive()) taken.insert(record.index);
  }
  uint32_t index = 0;
  while (taken.count(index) > 0) ++index;
  return index;
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
