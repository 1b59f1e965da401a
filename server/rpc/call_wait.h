// A wait of a call, which the end of the call may interrupt.
//
// A call learns the id of its wait only after the wait has begun. If the call is cancelled before
// that, whoever comes second ends the wait.

#ifndef SLUICE_SERVER_RPC_CALL_WAIT_H_
#define SLUICE_SERVER_RPC_CALL_WAIT_H_

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

// If the call is cancelled while it waits, two threads may notice. At most one of Begin() and
// Cancel() then returns true, and its caller finishes the call. Any thread may call any method.
template <typename Id>
class CallWait {
 public:
  // `end` ends the wait with that id, and returns whether the call still waited: then nobody calls
  // back. For Id() it is false, unless the call waits for something that has no id.
  explicit CallWait(std::function<bool(const Id&)> end) : end_(std::move(end)) {}

  // The call waits under `id`, or has waited; Id(): it does not wait. True: it was cancelled
  // meanwhile and still waited, so nobody calls back.
  bool Begin(const Id& id) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      id_ = id;
      if (!cancelled_) return false;
    }
    return end_(id);
  }

  // The call was cancelled. Returns whether it waited.
  bool Cancel() ABSL_LOCKS_EXCLUDED(mu_) {
    Id id;
    {
      absl::MutexLock lock(&mu_);
      cancelled_ = true;
      id = id_;
    }
    return end_(id);
  }

  bool cancelled() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return cancelled_;
  }

 private:
  const std::function<bool(const Id&)> end_;
  absl::Mutex mu_;
  Id id_ ABSL_GUARDED_BY(mu_) = Id();
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_CALL_WAIT_H_
