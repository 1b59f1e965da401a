// What arrives at a shard in pieces: pushes, and the offer of initial parameters.

#ifndef SLUICE_SERVER_PENDING_PUSH_H_
#define SLUICE_SERVER_PENDING_PUSH_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/exchange.h"
#include "server/staged_vector.h"

namespace sluice {

// A push that was let in at its header and is arriving. Owned by whoever feeds it, on one thread at
// a time.
struct PendingPush {
  PushHeader header;
  StagedVector gradient;
};

// What Shard::BeginPush says: `push` to go on with, or, if that is null, the answer already.
struct PushStart {
  std::unique_ptr<PendingPush> push;
  PushOutcome answer;
};

// Called exactly once, outside all locks, from any thread.
using PushCallback = std::function<void(absl::StatusOr<PushOutcome>)>;

// What Shard::BeginInitialize says: where to stage the parameters, or, if null, the answer already.
struct InitializeStart {
  std::unique_ptr<StagedVector> parameters;
  InitializeOutcome answer;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_PENDING_PUSH_H_
