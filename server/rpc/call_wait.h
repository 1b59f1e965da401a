// The wait of a call in the shard, which the end of the call may interrupt.
//
// A call learns the id of its wait only after the wait has begun. If the call is cancelled before
// that, whoever comes second ends the wait.

#ifndef SLUICE_SERVER_RPC_CALL_WAIT_H_
#define SLUICE_SERVER_RPC_CALL_WAIT_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

// Id is PushId or PullId; Id() means that the call does not wait. Any thread may call any method.
template <typename Id>
class CallWait {
 public:
  // The call waits under `id`. Returns whether it was cancelled before; then end the wait.
  bool Begin(Id id) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    id_ = id;
    return cancelled_;
  }

  // The call was cancelled. Returns the id of the latest wait, which may have ended, or Id().
  Id Cancel() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    cancelled_ = true;
    return id_;
  }

 private:
  absl::Mutex mu_;
  Id id_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_CALL_WAIT_H_
