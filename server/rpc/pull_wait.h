// What a pull of parameters and a pull of rows have in common until they are answered: a permit,
// and a wait in the store or for the permit's step.

#ifndef SLUICE_SERVER_RPC_PULL_WAIT_H_
#define SLUICE_SERVER_RPC_PULL_WAIT_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/replica/parameter_store.h"
#include "server/rpc/access/pull_limits.h"
#include "server/rpc/call_canceller.h"
#include "server/rpc/call_wait.h"

namespace sluice {

// If the call is cancelled while it waits, two threads may notice. One of Ask() and Cancel() then
// returns true, and its caller finishes the call. Enter() comes first; any thread may call the
// rest.
class PullWait {
 public:
  // `limits` and `store` outlive it.
  PullWait(PullLimits& limits, ParameterStore& store)
      : limits_(limits), store_(store), wait_([this](PullId id) { return End(id); }) {}

  // Takes the permit, or returns TOO_MANY_PULLS. `call` is cancelled if a later pull ends this one.
  absl::Status Enter(SessionId session, const std::shared_ptr<CallCanceller>& call) {
    auto permit = limits_.Permit(session);
    if (!permit.ok()) return permit.status();
    permit_ = *std::move(permit);
    permit_->OnEnd([call] { call->Cancel(); });
    return absl::OkStatus();
  }

  // Asks the store for the parameters. The call may end on another thread before this returns, so
  // the caller keeps this object alive. True: the call was cancelled, and `done` is not called.
  bool Ask(const PullRequest& request, PullCallback done) {
    const PullId id = store_.Pull(request, std::move(done));
    // An answered pull may hold its permit already, which Begin() would end.
    return id != PullId() && wait_.Begin(id);
  }

  // The call was cancelled. Returns whether it waited.
  bool Cancel() { return wait_.Cancel(); }

  const std::shared_ptr<PullPermit>& permit() const { return permit_; }  // null before Enter()

 private:
  bool End(PullId id) { return store_.CancelPull(id) || (permit_ != nullptr && permit_->Cancel()); }

  PullLimits& limits_;
  ParameterStore& store_;
  std::shared_ptr<PullPermit> permit_;
  CallWait<PullId> wait_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_PULL_WAIT_H_
