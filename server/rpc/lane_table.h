// Connects the lanes of a push or pull with its own call.
//
// They use different connections, so any of them may come first. A lane that comes before its call
// waits here. Call numbers only grow: a lane with an older number is too late. The handlers of
// Join, PushGradients, PullParams, PushLane and PullLane use the table.

#ifndef SLUICE_SERVER_RPC_LANE_TABLE_H_
#define SLUICE_SERVER_RPC_LANE_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"

namespace sluice {

// A push or pull with lanes: its session and its call number.
struct LaneName {
  SessionId session;
  uint64_t call = 0;
};

// Errors of Find(): UNKNOWN_SESSION; BAD_ARGUMENT if `waiting` lanes of the session wait already.
absl::Status NoSessionOfLane(SessionId session);
absl::Status TooManyLanes(size_t waiting);

// `Call` is what a push or pull shares with its lanes. May be used by any thread.
template <typename Call>
class LaneTable {
 public:
  // The most lanes of a session that may wait at once.
  static constexpr size_t kMostWaiting = 16;

  // Called with the lane's call, or null if that has ended. Called outside all locks.
  using Found = std::function<void(std::shared_ptr<Call>)>;

  // A session has begun or ended. At its end all its waiting lanes are called with null.
  void Begin(SessionId session) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    sessions_[session];
  }
  void End(SessionId session) ABSL_LOCKS_EXCLUDED(mu_) {
    std::multimap<uint64_t, Waiting> waiting;
    {
      absl::MutexLock lock(&mu_);
      const auto found = sessions_.find(session);
      if (found == sessions_.end()) return;
      waiting = std::move(found->second.waiting);
      sessions_.erase(found);
    }
    for (const auto& entry : waiting) entry.second.found(nullptr);
  }

  // A call has begun: its lanes find it until Close(). Close() also ends the wait of lanes whose
  // call was never opened. Both do nothing for a session that has ended.
  void Open(const LaneName& name, std::shared_ptr<Call> call) ABSL_LOCKS_EXCLUDED(mu_) {
    Settle(name, std::move(call));
  }
  void Close(const LaneName& name) ABSL_LOCKS_EXCLUDED(mu_) { Settle(name, nullptr); }

  // Finds a lane's call and calls `found`, perhaps before it returns; not after an error. `lane`
  // identifies the lane for Cancel().
  absl::Status Find(const LaneName& name, const void* lane, Found found) ABSL_LOCKS_EXCLUDED(mu_) {
    std::shared_ptr<Call> call;
    {
      absl::MutexLock lock(&mu_);
      const auto session = sessions_.find(name.session);
      if (session == sessions_.end()) return NoSessionOfLane(name.session);
      Session& calls = session->second;
      const auto open = calls.open.find(name.call);
      if (open != calls.open.end()) {
        call = open->second;
      } else if (name.call > calls.newest) {
        if (calls.waiting.size() == kMostWaiting) return TooManyLanes(kMostWaiting);
        calls.waiting.emplace(name.call, Waiting{lane, std::move(found)});
        return absl::OkStatus();
      }
    }
    found(std::move(call));
    return absl::OkStatus();
  }

  // Ends a lane's wait. Returns true if it waited; then `found` is not called.
  bool Cancel(const LaneName& name, const void* lane) ABSL_LOCKS_EXCLUDED(mu_) {
    Found found;  // destroyed after the lock is released
    absl::MutexLock lock(&mu_);
    const auto session = sessions_.find(name.session);
    if (session == sessions_.end()) return false;
    auto& waiting = session->second.waiting;
    const auto range = waiting.equal_range(name.call);
    const auto it = std::find_if(range.first, range.second,
                                 [lane](const auto& entry) { return entry.second.lane == lane; });
    if (it == range.second) return false;
    found = std::move(it->second.found);
    waiting.erase(it);
    return true;
  }

 private:
  struct Waiting {
    const void* lane = nullptr;
    Found found;
  };
  struct Session {
    uint64_t newest = 0;  // the highest call number so far
    std::map<uint64_t, std::shared_ptr<Call>> open;
    std::multimap<uint64_t, Waiting> waiting;  // all for higher call numbers
  };

  // Lanes that wait for lower call numbers are called with null, since those calls have ended.
  void Settle(const LaneName& name, std::shared_ptr<Call> call) ABSL_LOCKS_EXCLUDED(mu_) {
    std::vector<std::pair<uint64_t, Found>> found;
    {
      absl::MutexLock lock(&mu_);
      const auto session = sessions_.find(name.session);
      if (session == sessions_.end()) return;
      Session& calls = session->second;
      calls.newest = std::max(calls.newest, name.call);
      if (call == nullptr) {
        calls.open.erase(name.call);
      } else {
        calls.open[name.call] = call;
      }
      const auto end = calls.waiting.upper_bound(name.call);
      for (auto it = calls.waiting.begin(); it != end; ++it) {
        found.emplace_back(it->first, std::move(it->second.found));
      }
      calls.waiting.erase(calls.waiting.begin(), end);
    }
    for (const auto& lane : found) lane.second(lane.first == name.call ? call : nullptr);
  }

  absl::Mutex mu_;
  std::map<SessionId, Session> sessions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_LANE_TABLE_H_
