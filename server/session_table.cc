#include "server/session_table.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace sluice {

void SessionRecord::Remember(const PushHeader& header, const PushOutcome& outcome, absl::Time now) {
  last_sequence = std::max(last_sequence, header.sequence);
  answers[header.sequence] = outcome;
  if (answers.size() > kKeptAnswers) answers.erase(answers.begin());
  last_gradient_step = header.step;
  ++(outcome.disposition == Disposition::kStaleDropped ? stale : accepted);
  if (header.loss.has_value()) loss = *header.loss;
  last_push = now;
}

absl::StatusOr<SessionRecord*> SessionTable::Open(const JoinRequest& request, Step active_from) {
  auto it = records_.find(request.worker);
  if (it == records_.end()) {
    const absl::Status room = MakeRoom();
    if (!room.ok()) return room;
    it = records_.emplace(request.worker, SessionRecord()).first;
  }
  SessionRecord& record = it->second;
  by_session_.erase(record.session);
  const bool returns = record.process_nonce == request.process_nonce;
  const bool keeps_place = returns && record.alive() && record.role == request.role;
  const uint32_t index = keeps_place ? record.index : FreeIndex(record);
  if (!returns) record = SessionRecord();
  last_session_ = last_session_.Next();
  record.worker = request.worker;
  record.role = request.role;
  record.process_nonce = request.process_nonce;
  record.session = last_session_;
  record.host = request.host;
  record.pid = request.pid;
  record.index = request.role == SessionRole::kWorker ? request.index.value_or(index) : 0;
  record.presence = Presence::kPresent;
  if (!keeps_place) record.active_from = active_from;
  by_session_.emplace(record.session, &record);
  return &record;
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

absl::Status SessionTable::MakeRoom() {
  if (records_.size() < max_sessions_) return absl::OkStatus();
  const auto gone = std::find_if(records_.begin(), records_.end(),
                                 [](const auto& entry) { return !entry.second.alive(); });
  if (gone == records_.end()) {
    return MakeError(Reason::kTooManyWorkers,
                     absl::StrCat("the server has ", records_.size(),
                                  " workers, its limit; raise it with --max-workers"));
  }
  by_session_.erase(gone->second.session);
  records_.erase(gone);
  return absl::OkStatus();
}

absl::StatusOr<SessionRecord*> SessionTable::Find(SessionId session) {
  const auto it = by_session_.find(session);
  if (it != by_session_.end() && it->second->alive()) return it->second;
  return MakeError(Reason::kUnknownSession,
                   absl::StrCat("session ", session.value(),
                                " is not open: it ended, or its worker joined again; join anew"));
}

absl::StatusOr<SessionRecord*> SessionTable::FindWorker(SessionId session) {
  const auto record = Find(session);
  if (!record.ok() || (*record)->role == SessionRole::kWorker) return record;
  return MakeError(Reason::kNotAWorker,
                   absl::StrCat((*record)->worker, " joined as an observer, which only pulls"));
}

SessionRecord* SessionTable::FindProcess(const std::string& worker, ProcessNonce process) {
  const auto it = records_.find(worker);
  return it != records_.end() && it->second.process_nonce == process ? &it->second : nullptr;
}

void SessionTable::EvictLostBefore(absl::Time deadline) {
  for (auto& entry : records_) {
    SessionRecord& record = entry.second;
    if (record.presence == Presence::kLost && record.lost_at <= deadline) {
      record.presence = Presence::kEvicted;
    }
  }
}

uint32_t SessionTable::CountAlive(SessionRole role) const {
  return Count([role](const SessionRecord& r) { return r.role == role && r.alive(); });
}

uint32_t SessionTable::CountKnown(SessionRole role) const {
  return Count([role](const SessionRecord& r) { return r.role == role; });
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

std::vector<std::string> SessionTable::MissingNames(Step step, size_t limit) const {
  std::vector<std::string> names;
  for (const auto& entry : records_) {
    if (names.size() == limit) break;
    if (entry.second.IsMissingFrom(step)) names.push_back(entry.first);
  }
  return names;
}

std::vector<SessionRecord> SessionTable::Records() const {
  std::vector<SessionRecord> records;
  for (const auto& entry : records_) records.push_back(entry.second);
  return records;
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
