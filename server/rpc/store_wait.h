// The wait of a call in the store: until its vector is let in, until other servers have their
// parts, or for parameters.

#ifndef SLUICE_SERVER_RPC_STORE_WAIT_H_
#define SLUICE_SERVER_RPC_STORE_WAIT_H_

#include "server/replica/parameter_store.h"
#include "server/rpc/call_wait.h"

namespace sluice {

// Id is PushId or PullId. If the call is cancelled while it waits, two threads may notice. At most
// one of Begin() and Cancel() then returns true, and its caller finishes the call. Any thread may
// call Cancel().
template <typename Id>
class StoreWait {
 public:
  // The store's method that ends such a wait; it returns whether the call still waited.
  using End = bool (ParameterStore::*)(Id);

  // `store` outlives it.
  StoreWait(ParameterStore& store, End end) : store_(store), end_(end) {}

  // `id` is what the store returned. True: the call was cancelled meanwhile, and the store will not
  // call back.
  bool Begin(Id id) { return id != Id() && wait_.Begin(id) && EndWait(id); }

  // The call was cancelled. Returns whether it waited.
  bool Cancel() { return EndWait(wait_.Cancel()); }

 private:
  bool EndWait(Id id) { return id != Id() && (store_.*end_)(id); }

  ParameterStore& store_;
  const End end_;
  CallWait<Id> wait_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_STORE_WAIT_H_
