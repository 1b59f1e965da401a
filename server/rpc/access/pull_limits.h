// Limits the memory that pulls take, even if their callers read slowly or not at all.
//
// While a pull is sent, it holds the parameters of one step in memory. Without limits, callers that
// do not read could make the server keep every step:
// 1. A session has few pulls under way, and so have all observers together (TOO_MANY_PULLS).
// 2. The pulls of all workers hold few different steps, and the pulls of one worker hold fewer. A
//    pull that would hold one step more waits until a step is released. Then it asks for the newest
//    step, which it shares with all pulls that waited. A stalled worker releases its step when its
//    connection or its call ends.
// 3. The pulls of observers hold fewer steps still. A pull that would hold one step more ends the
//    pulls that hold the oldest step. So observers never make a worker wait.
// With several servers no pull of a worker waits, because all servers must send the same step. Then
// only rule 1 bounds the steps in memory.

#ifndef SLUICE_SERVER_RPC_ACCESS_PULL_LIMITS_H_
#define SLUICE_SERVER_RPC_ACCESS_PULL_LIMITS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"

namespace sluice {

class PullPermit;

// May be used by any thread. Outlives its permits. Callbacks run outside its lock.
class PullLimits {
 public:
  // `waits`: whether pulls of workers may wait, and be asked for again.
  explicit PullLimits(bool waits = true) : waits_(waits) {}

  // Pulls under way of one session: the current one, and earlier ones that their caller has read or
  // cancelled, because a busy server notices their end late.
  static constexpr size_t kMostOfWorker = 64;
  static constexpr size_t kMostOfObserver = 8;
  static constexpr size_t kMostOfObservers = 256;  // of all observers together
  // Different steps that pulls hold.
  static constexpr size_t kStepsOfWorkers = 4;
  static constexpr size_t kStepsOfWorker = 2;  // of one session
  static constexpr size_t kStepsOfObservers = 2;

  // The parameters of a step, and the name of their encoding, which is empty if there is none.
  using Parameters = std::pair<Step, std::string>;

  // A session has begun or ended. A session that is not open counts as an observer's.
  void Begin(SessionId session, SessionRole role) ABSL_LOCKS_EXCLUDED(mu_);
  void End(SessionId session) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns a permit for one more pull, or TOO_MANY_PULLS. Destroying the permit ends the pull and
  // releases the step that it holds.
  absl::StatusOr<std::shared_ptr<PullPermit>> Permit(SessionId session) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class PullPermit;
  using Callbacks = std::vector<std::function<void()>>;
  using Pulls = std::set<std::pair<SessionId, PullPermit*>>;
  using Holders = std::map<Parameters, Pulls>;

  void Recognize(PullPermit& pull) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Enter(SessionId session, bool observes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Leave(PullPermit& pull) ABSL_LOCKS_EXCLUDED(mu_);
  void StopCounting(PullPermit& pull) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayHold(const Parameters& parameters, const PullPermit& pull) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Callbacks Release(PullPermit& pull) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Callbacks EndOldest(SessionId session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const bool waits_;
  absl::Mutex mu_;
  std::set<SessionId> workers_ ABSL_GUARDED_BY(mu_);
  std::map<SessionId, size_t> under_way_ ABSL_GUARDED_BY(mu_);  // of sessions with any
  size_t of_observers_ ABSL_GUARDED_BY(mu_) = 0;
  Holders by_workers_ ABSL_GUARDED_BY(mu_);
  Holders by_observers_ ABSL_GUARDED_BY(mu_);
  std::vector<PullPermit*> waiting_ ABSL_GUARDED_BY(mu_);  // workers' pulls, in order of arrival
};

// One pull under way; its call and its lanes share it.
class PullPermit {
 public:
  PullPermit(PullLimits& limits, SessionId session, bool observes)
      : limits_(limits), session_(session), observes_(observes) {}
  ~PullPermit() { limits_.Leave(*this); }

  PullPermit(const PullPermit&) = delete;
  PullPermit& operator=(const PullPermit&) = delete;

  // The pull wants to send `parameters`.
  //   kNow     It may, and holds them until the permit is destroyed.
  //   kLater   It waits, and must not hold them. `again` is called once, perhaps before Hold()
  //            returns: the caller then asks the shard for the newest step, and calls Hold() again.
  //   kEnded   The pull has been ended.
  enum class Turn { kNow, kLater, kEnded };
  Turn Hold(const PullLimits::Parameters& parameters, std::function<void()> again);

  // The caller has cancelled the pull. Returns whether it waited; then `again` is not called.
  bool Cancel();

  // Only the last message is left to send: the pull counts no longer. A caller that has read it may
  // pull again at once, though the server hears of the call's end later. The step that the pull
  // holds stays held until then.
  void StopCounting();

  // Calls `end` when a later pull of an observer ends this one, or at once if that has happened.
  void OnEnd(std::function<void()> end);

 private:
  friend class PullLimits;

  PullLimits& limits_;
  const SessionId session_;
  // Guarded by limits_.mu_.
  bool observes_;
  bool counts_ = true;
  bool ended_ = false;
  absl::optional<PullLimits::Parameters> held_;
  std::function<void()> again_;  // while it waits
  PullLimits::Callbacks ends_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_PULL_LIMITS_H_
