// Where the lanes of a push or pull find its first call, whichever of them comes first.
//
// The connections that they come through are different ones, so nothing orders them. Numbers of
// calls only grow: a lane of one that has ended is told so, however late it is.

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

// Which call, of which session.
struct LaneName {
  SessionId session;
  uint64_t call = 0;
};

// Why a lane is refused: its session has ended, or so many of it wait already.
absl::Status NoSessionOfLane(SessionId session);
absl::Status TooManyLanes(size_t waiting);

// `Call` is what the first call shares with its lanes. May be used by any thread.
template <typename Call>
class LaneTable {
 public:
  // Lanes of a session that may wait for their first calls at once.
  static constexpr size_t kMostWaiting = 16;

  // Told the first call; null if that has ended. Called outside all locks.
  using Found = std::function<void(std::shared_ptr<Call>)>;

  // A session has begun, or ended: whoever waits is told that there is nothing.
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

  // The first call: lanes find it until Close(), which is also for one that was never opened. Both
  // do nothing for a session that has ended.
  void Open(const LaneName& name, std::shared_ptr<Call> call) ABSL_LOCKS_EXCLUDED(mu_) {
    Settle(name, std::move(call));
  }
  void Close(const LaneName& name) ABSL_LOCKS_EXCLUDED(mu_) { Settle(name, nullptr); }

  // A lane: calls `found`, perhaps before it returns. `lane` is for Cancel(). After an error it is
  // not called.
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

  // True iff the lane waited: it will not be called then.
  bool Cancel(const LaneName& name, const void* lane) ABSL_LOCKS_EXCLUDED(mu_) {
    Found found;  // ends when the lock is released
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
    uint64_t newest = 0;  // of the calls that came so far
    std::map<uint64_t, std::shared_ptr<Call>> open;
    std::multimap<uint64_t, Waiting> waiting;  // all for newer ones
  };

  // Lanes that wait for older calls have been outrun: those have ended.
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
