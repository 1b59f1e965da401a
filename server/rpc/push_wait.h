// The wait of PushGradients, PushPull and InitializeParams in the store, until it lets them in.

#ifndef SLUICE_SERVER_RPC_PUSH_WAIT_H_
#define SLUICE_SERVER_RPC_PUSH_WAIT_H_

#include "server/rpc/call_wait.h"
#include "server/shard/parameter_store.h"

namespace sluice {

// If the call is cancelled while it waits, two threads may notice. At most one of Begin() and
// Cancel() then returns true, and its caller finishes the call. Any thread may call Cancel().
class PushWait {
 public:
  // `store` outlives it.
  explicit PushWait(ParameterStore& store) : store_(store) {}

  // `id` is what BeginPush() or BeginInitialize() of the store returned. True: the call was
  // cancelled meanwhile, and the store will not call back.
  bool Begin(PushId id) { return id != PushId() && wait_.Begin(id) && store_.CancelPush(id); }

  // The call was cancelled. Returns whether it waited.
  bool Cancel() { return store_.CancelPush(wait_.Cancel()); }

 private:
  ParameterStore& store_;
  CallWait<PushId> wait_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_PUSH_WAIT_H_
