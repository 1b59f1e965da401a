// Limits how many pulls of each observer are under way. A pull that its caller does not read keeps
// one step's parameters in memory, so without a limit an observer could fill the memory.

#ifndef SLUICE_SERVER_RPC_ACCESS_OBSERVER_PULLS_H_
#define SLUICE_SERVER_RPC_ACCESS_OBSERVER_PULLS_H_

#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"

namespace sluice {

// A pull holds this while it is under way.
using PullPermit = std::shared_ptr<const void>;

// May be used by any thread. Outlives its permits.
class ObserverPulls {
 public:
  // The most pulls of one session: the current one, and an earlier one that its caller has
  // cancelled and whose end the server has not noticed yet.
  static constexpr int kMost = 2;

  // A permit for one more pull of that session. TOO_MANY_PULLS if kMost are under way.
  absl::StatusOr<PullPermit> Begin(SessionId session);

 private:
  void End(SessionId session);

  absl::Mutex mu_;
  std::map<SessionId, int> under_way_ ABSL_GUARDED_BY(mu_);  // sessions with at least one pull
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_OBSERVER_PULLS_H_
