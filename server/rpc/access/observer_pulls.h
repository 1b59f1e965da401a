// How many pulls of each observer are under way. One that is not read keeps a step's parameters in
// memory: without a bound an observer that reads nothing could fill it.

#ifndef SLUICE_SERVER_RPC_ACCESS_OBSERVER_PULLS_H_
#define SLUICE_SERVER_RPC_ACCESS_OBSERVER_PULLS_H_

#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"

namespace sluice {

// A pull is under way for as long as it has this.
using PullPermit = std::shared_ptr<const void>;

// May be used by any thread. Outlives its permits.
class ObserverPulls {
 public:
  // Of one session: one, and one that was given up and whose end is not known yet.
  static constexpr int kMost = 2;

  // For one more of that session's. TOO_MANY_PULLS.
  absl::StatusOr<PullPermit> Begin(SessionId session);

 private:
  void End(SessionId session);

  absl::Mutex mu_;
  std::map<SessionId, int> under_way_ ABSL_GUARDED_BY(mu_);  // of sessions that have any
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_OBSERVER_PULLS_H_
