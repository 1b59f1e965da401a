// A server's stripe, and the calls of workers that carry vectors: offers of initial parameters,
// pushes and pulls. On the leader, or the only server, it is the Shard's LeaderStore, on the other
// servers a Replica.

#ifndef SLUICE_SERVER_REPLICA_PARAMETER_STORE_H_
#define SLUICE_SERVER_REPLICA_PARAMETER_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/parallel.h"
#include "common/protocol/protocol_types.h"
#include "common/trace/trace.h"
#include "server/aggregation/pending_push.h"
#include "server/replica/executors.h"
#include "server/replica/pull_result.h"
#include "server/replica/server_stripe.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/active_pulls.h"
#include "server/state/server_span.h"
#include "server/state/table_memory.h"
#include "server/state/wire_bytes.h"

namespace sluice {

// Any thread may call any method. Errors: parameter_server.proto.
class ParameterStore {
 public:
  virtual ~ParameterStore() = default;

  // The first complete offer of initial parameters becomes step 0. JudgeOffer() returns the answer
  // to an offer that is not to be sent. BeginInitialize() calls `start` when the offer is answered
  // or admitted, and returns what BeginPush() does. `cancel` is as there, if the offer may wait. An
  // offer that was begun must end with one of the next two. `done` gets BAD_CHUNK if it has a gap.
  // FinishInitialize() returns what FinishPush() does.
  virtual absl::StatusOr<absl::optional<InitializeOutcome>> JudgeOffer(SessionId session,
                                                                       uint32_t attempt) = 0;
  virtual PushId BeginInitialize(SessionId session, uint32_t attempt, InitializeStartCallback start,
                                 std::function<void()> cancel) = 0;
  virtual PushId FinishInitialize(std::unique_ptr<PendingPush> parameters,
                                  InitializeCallback done) = 0;
  virtual void AbandonInitialize(std::unique_ptr<PendingPush> parameters) = 0;

  // Takes a header, or the error that it was received with, which is counted. Calls `start` when
  // the push is refused, answered or admitted. An admitted push must end with exactly one of
  // FinishPush(), RefusePush() and AbandonPush(). `cancel`, if any, is called if its session ends
  // while it arrives. Returns an id for CancelPush(), or 0 if the push did not wait. BAD_ARGUMENT
  // if too many pushes wait.
  virtual PushId BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                           std::function<void()> cancel) = 0;
  // The stream ended. Returns true if it waited: then `start` will not be called.
  virtual bool CancelPush(PushId id) = 0;
  // The payload is here. Returns an id for CancelGathering(), or 0 if `done` never waits for
  // others.
  virtual PushId FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) = 0;
  // The payload is invalid. `why` is the error that PendingPush or GatheredPush returned.
  virtual void RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why,
                          PushCallback done) = 0;
  // It ends without an answer.
  virtual void AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) = 0;

  // The call of a finished push or offer ended. True: parts are missing on other servers, so it is
  // abandoned, and `done` will not be called.
  virtual bool CancelGathering(PushId id) = 0;

  // Calls `done`, perhaps before it returns, when the pull may be answered. Returns an id for
  // CancelPull(), or 0 if the pull did not wait.
  virtual PullId Pull(const PullRequest& request, PullCallback done) = 0;
  virtual bool CancelPull(PullId id) = 0;  // true: `done` will not be called
  // Whether there are other servers, with other stripes of the vector.
  virtual bool is_striped() const = 0;
  virtual std::string NameOf(SessionId session) const = 0;  // for traces; empty if unknown

  const ServerStripe& stripe() const { return stripe_; }
  // Whether tensors may go through shared memory to and from processes of this node.
  bool shares_memory() const { return memory_ == SnapshotMemory::kShared; }
  Parallel& parallel() { return *parallel_; }
  // For what the rpc layer does with whole vectors, too. Drain them, when no calls come any more,
  // before what tasks use is destroyed: the journal, and what listeners and callbacks refer to.
  Executors& executors() { return executors_; }
  Trace* trace() const { return trace_; }                      // null if there is none
  const SpanListener& on_span() const { return on_span_; }     // may be null
  WireBytes& wire_bytes() const { return wire_bytes_; }        // the rpc layer counts its messages
  ActivePulls& active_pulls() const { return active_pulls_; }  // it also says whose pulls it sends

 protected:
  // Without `parallel` one thread does the arithmetic alone. `trace`, which may be null, outlives
  // this.
  ParameterStore(SnapshotMemory memory, TableMemory table_memory,
                 std::unique_ptr<Parallel> parallel, Executors executors, Trace* trace = nullptr,
                 SpanListener on_span = nullptr)
      : memory_(memory),
        parallel_(parallel == nullptr ? std::make_unique<Serial>() : std::move(parallel)),
        stripe_(memory, *parallel_, std::move(table_memory)),
        executors_(std::move(executors)),
        trace_(trace),
        on_span_(std::move(on_span)) {}

  ServerStripe& mutable_stripe() { return stripe_; }

 private:
  const SnapshotMemory memory_;
  const std::unique_ptr<Parallel> parallel_;
  ServerStripe stripe_;
  Executors executors_;
  Trace* const trace_;
  const SpanListener on_span_;
  mutable WireBytes wire_bytes_;
  mutable ActivePulls active_pulls_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_PARAMETER_STORE_H_
