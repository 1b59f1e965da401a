// The call PullSlots: a worker takes what the server's optimizer remembers, to save it.

#ifndef SLUICE_SERVER_RPC_SLOTS_H_
#define SLUICE_SERVER_RPC_SLOTS_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/replica/parameter_store.h"
#include "server/rpc/turns.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// The slots of a step, copied.
struct CopiedSlots {
  std::shared_ptr<const StripeCheckpoint> taken;
  std::vector<uint64_t> checksums;  // XXH3-64, of each slot
};

// The copies of slots that are being sent. All calls of a step share one. Any thread may use it.
class SlotCopies {
 public:
  using Copy = std::shared_ptr<const CopiedSlots>;

  // The copy of that step; null if there is none.
  Copy Of(Step step) const ABSL_LOCKS_EXCLUDED(mu_);
  void Add(const Copy& copy) ABSL_LOCKS_EXCLUDED(mu_);
  size_t alive() const ABSL_LOCKS_EXCLUDED(mu_);  // how many copies some call still sends

  Turns& turns() { return turns_; }  // one copy is made at a time

 private:
  Turns turns_{1};
  mutable absl::Mutex mu_;
  std::vector<std::weak_ptr<const CopiedSlots>> copies_ ABSL_GUARDED_BY(mu_);
};

// Copies the slots of the store's stripe by `copy`, and sends them. A caller who reads slowly is
// cut off, with CANCELLED: after 60 s and the time that 1 MB/s takes. RESOURCE_EXHAUSTED without a
// reason if calls still send the copies of four other steps, or 128 wait; call again later. Other
// errors are those of `copy`. All outlive the call.
using CopyStripe = std::function<void(StripeCopyCallback)>;
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullSlots(grpc::CallbackServerContext& context,
                                                           SlotCopies& copies,
                                                           ParameterStore& store, CopyStripe copy);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SLOTS_H_
