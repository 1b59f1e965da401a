// Makes a blocking call to each of a job's servers at the same time. When one has failed, it ends
// the others, which may otherwise wait for it without end.

#ifndef SLUICE_WORKER_CONNECTION_CALLS_AT_ONCE_H_
#define SLUICE_WORKER_CONNECTION_CALLS_AT_ONCE_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/executor.h"

namespace sluice {

// The calls that make one push, one pull or one offer. Used by one thread at a time.
//
// Server 0 is the leader. If another server's call has failed, the leader's usually fails
// soon as well, with an error that says more; so all calls go on for some time before they are
// cancelled.
class CallsAtOnce {
 public:
  // `threads` has a thread for each server, and outlives this. cancel(i) makes the call to server i
  // end soon. After a failure that is done when the leader's call has ended, or after
  // `patience`.
  CallsAtOnce(Executor& threads, uint32_t servers, absl::Duration patience,
              std::function<void(uint32_t)> cancel)
      : threads_(threads),
        patience_(patience),
        cancel_(std::move(cancel)),
        cancelled_(servers, false) {}

  // Whether the calls to other servers go on after the leader's has succeeded.
  enum class Others { kGoOn, kEnd };

  // Runs call(i) for each server i, except for those that were cancelled earlier, and returns when
  // all have returned. OK if all have succeeded that were not cancelled, and with kEnd also if the
  // leader's has. Otherwise the leader's error, or if it has none the first one.
  absl::Status Run(Others others, absl::FunctionRef<absl::Status(uint32_t)> call);

 private:
  class Round;

  Executor& threads_;
  const absl::Duration patience_;
  const std::function<void(uint32_t)> cancel_;
  std::vector<bool> cancelled_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_CALLS_AT_ONCE_H_
