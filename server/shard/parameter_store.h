// Where the calls of workers that carry vectors go: offers of initial parameters, pushes and pulls.
// On the first server, or the only one, it is the Shard.

#ifndef SLUICE_SERVER_SHARD_PARAMETER_STORE_H_
#define SLUICE_SERVER_SHARD_PARAMETER_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/parallel.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/layout.h"
#include "common/trace/trace.h"
#include "server/admission/gate.h"
#include "server/admission/pull_queue.h"
#include "server/aggregation/pending_push.h"
#include "server/shard/executors.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/active_pulls.h"
#include "server/state/server_span.h"
#include "server/state/wire_bytes.h"

namespace sluice {

// Any thread may call any method. Errors: parameter_server.proto.
class ParameterStore {
 public:
  virtual ~ParameterStore() = default;

  // The first complete offer of initial parameters becomes step 0. JudgeOffer() returns the answer
  // to an offer that is not to be sent. BeginInitialize() calls `start` when the offer is answered
  // or admitted, and returns what BeginPush() does; so does `cancel`. An offer that was begun must
  // end with one of the next two. `done` gets BAD_CHUNK if it has a gap. FinishInitialize() returns
  // what FinishPush() does.
  virtual absl::StatusOr<absl::optional<InitializeOutcome>> JudgeOffer(SessionId session,
                                                                       uint32_t attempt) = 0;
  virtual PushId BeginInitialize(SessionId session, uint32_t attempt, InitializeStartCallback start,
                                 std::function<void()> cancel) = 0;
  virtual PushId FinishInitialize(std::unique_ptr<PendingPush> parameters,
                                  InitializeCallback done) = 0;
  virtual void AbandonInitialize(std::unique_ptr<PendingPush> parameters) = 0;

  // Takes a header, or the error that it was received with, which is counted. Calls `start` when
  // the push is refused, answered or admitted. An admitted push must end with exactly one of the
  // last three methods. `cancel`, if any, is called if its session ends while it arrives. Returns
  // an id for CancelPush(), or 0 if the push did not wait. BAD_ARGUMENT if too many pushes wait.
  virtual PushId BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                           std::function<void()> cancel) = 0;
  // The stream ended. Returns true if it waited: then `start` will not be called.
  virtual bool CancelPush(PushId id) = 0;
  // The payload is here. Returns an id for CancelGathering(), or 0 if no other server has a part.
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
  // The newest snapshot whose elements before `end` are final. Call it after initialization.
  virtual std::shared_ptr<const Snapshot> Newest(uint64_t end) const = 0;

  // Whether there are other servers with other stripes of the vector. Then a pull cannot be asked
  // for again, and the sequencer lets in one offer of parameters at a time.
  virtual bool is_striped() const = 0;
  // Of what is held here: the whole vector, or a stripe. Null before the model is known.
  virtual std::shared_ptr<const Layout> held_layout() const = 0;
  virtual std::string NameOf(SessionId session) const = 0;  // for traces; empty if unknown
  // Whether tensors may go through shared memory to and from processes of this node.
  virtual bool shares_memory() const = 0;
  virtual Parallel& parallel() = 0;
  virtual Executors& executors() = 0;       // for what the rpc layer does with whole vectors
  virtual Trace* trace() const = 0;         // null if there is none
  virtual WireBytes& wire_bytes() = 0;      // the rpc layer counts its messages
  virtual ActivePulls& active_pulls() = 0;  // it also says whose pulls it sends
  virtual const SpanListener& on_span() const = 0;  // may be null
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_PARAMETER_STORE_H_
