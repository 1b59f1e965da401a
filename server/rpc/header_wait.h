// What PushGradients and PushPull have in common until their gradient is taken: a wait in the
// store, at the header.

#ifndef SLUICE_SERVER_RPC_HEADER_WAIT_H_
#define SLUICE_SERVER_RPC_HEADER_WAIT_H_

#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "server/rpc/call_wait.h"
#include "server/shard/parameter_store.h"

namespace sluice {

// If the call is cancelled while it waits, two threads may notice. One of Begin() and Cancel() then
// returns true, and its caller finishes the call. Any thread may call Cancel().
class HeaderWait {
 public:
  // `store` outlives it.
  explicit HeaderWait(ParameterStore& store) : store_(store) {}

  // As ParameterStore::BeginPush(). The caller keeps this object alive until it returns. True: the
  // call was cancelled, and `start` is not called.
  bool Begin(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
             std::function<void()> cancel) {
    const PushId id = store_.BeginPush(header, std::move(start), std::move(cancel));
    return id != PushId() && wait_.Begin(id) && store_.CancelPush(id);
  }

  // The call was cancelled. Returns whether it waited.
  bool Cancel() { return store_.CancelPush(wait_.Cancel()); }

 private:
  ParameterStore& store_;
  CallWait<PushId> wait_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_HEADER_WAIT_H_
