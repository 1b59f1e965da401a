#include "server/membership/session_queries.h"

#include <algorithm>
#include <utility>

namespace sluice {

std::vector<SessionId> SilentSince(const SessionRecords& records, absl::Time deadline) {
  std::vector<SessionId> silent;
  for (const auto& [name, record] : records) {
    if (record.alive() && record.last_seen <= deadline) silent.push_back(record.session);
  }
  return silent;
}

void FindStalled(const SessionRecords& records, absl::Time now, StepState* state) {
  for (const auto& [name, record] : records) {
    if (!record.HasStalled(now)) continue;
    ++state->stalled_workers;
    if (state->stalled.size() == StepState::kNames) continue;
    state->stalled.push_back({name, now - record.last_push, record.push_interval});
  }
}

GoneWorkers CountGone(const SessionRecords& records) {
  GoneWorkers gone;
  for (const auto& [name, record] : records) {
    if (record.role != SessionRole::kWorker) continue;
    if (record.presence == Presence::kLeft) ++gone.left;
    if (record.presence != Presence::kLeft && !record.joined) ++gone.away;
  }
  return gone;
}

std::vector<SessionId> HoldersOf(Step step, const SessionRecords& records,
                                 absl::optional<uint64_t> slowest) {
  std::vector<SessionId> holders;
  for (const auto& [name, record] : records) {
    const bool slow = record.IsMemberOf(step) && !record.excused && record.clock == slowest;
    if (slowest.has_value() ? slow : record.IsMissingFrom(step)) holders.push_back(record.session);
  }
  return holders;
}

std::vector<std::string> ContributorsTo(Step step, const SessionRecords& records, size_t limit) {
  std::vector<std::string> names;
  for (const auto& [name, record] : records) {
    if (names.size() == limit) break;
    if (record.contributed == step) names.push_back(name);
  }
  return names;
}

bool TakesOver(const JoinRequest& request, const SessionRecords& records, Step step) {
  const auto it = records.find(request.worker);
  return it != records.end() && request.role == SessionRole::kWorker &&
         it->second.IsMissingFrom(step) &&
         request.index.value_or(it->second.index) == it->second.index;
}

bool AnyWorkerLeft(const SessionRecords& records) {
  return std::any_of(records.begin(), records.end(), [](const auto& entry) {
    return entry.second.role == SessionRole::kWorker && entry.second.presence == Presence::kLeft;
  });
}

std::vector<SessionRecord> PartsOfStep(const Census& census) {
  std::vector<SessionRecord> parts;
  for (const SessionRecord* record : census.of_step()) {
    SessionRecord part = record->OnlyOf(census.step());
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

std::vector<SessionRecord> WorkersAfter(const std::string& name, const SessionRecords& records,
                                        size_t most) {
  std::vector<SessionRecord> workers;
  for (auto it = records.upper_bound(name); it != records.end() && workers.size() < most; ++it) {
    if (it->second.role == SessionRole::kWorker) workers.push_back(it->second);
  }
  return workers;
}

ObserverPlaces PlacesFor(const std::string& observer, const SessionRecords& records) {
  ObserverPlaces places;
  for (const auto& [name, record] : records) {
    const bool same = name == observer;
    const bool observes = record.role == SessionRole::kObserver;
    if (same && !observes) places.is_workers = true;
    if (!observes || !record.alive()) continue;
    if (same) places.holder = record.process_nonce;
    if (!same) ++places.others;
  }
  return places;
}

}  // namespace sluice
