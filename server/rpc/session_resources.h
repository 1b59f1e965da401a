// The resources that the gRPC layer holds for each session, in addition to its calls. Join begins
// and ends them.

#ifndef SLUICE_SERVER_RPC_SESSION_RESOURCES_H_
#define SLUICE_SERVER_RPC_SESSION_RESOURCES_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/encoding/transform_registry.h"
#include "server/durable/constant_store.h"
#include "server/replica/parameter_store.h"
#include "server/rpc/access/pull_limits.h"
#include "server/rpc/access/session_owners.h"
#include "server/rpc/lane.h"
#include "server/rpc/offer_turns.h"
#include "server/rpc/shared_memories.h"
#include "server/rpc/snapshot_chunks.h"
#include "server/rpc/version_log.h"

namespace sluice {

// The addresses of a job's servers, the first one's first; or UNAVAILABLE if not all have come.
using JobServers = std::function<absl::StatusOr<std::vector<std::string>>()>;

// May be used by any thread.
struct SessionResources {
  // `transforms` and `store` outlive it.
  SessionResources(const TransformRegistry& transforms, ParameterStore& store)
      : memories(store.shares_memory()), pulls(!store.is_striped()), chunks(transforms, store) {}

  // The session's stream has begun on `connection`, or ended. `memory` is what the worker shares,
  // and `worker` its name, as it is shown; empty if it has joined at another server.
  void Begin(SessionId session, SessionRole role, std::string connection,
             const absl::optional<SharedMemoryName>& memory, const std::string& worker) {
    if (role == SessionRole::kWorker) {
      owners.OpenWorker(session);
    } else {
      owners.OpenObserver(session, std::move(connection));
    }
    memories.Open(session, memory, worker);
    lanes.Begin(session);
    offers.Begin(session);
    constant_offers.Begin(session);
    pulls.Begin(session, role);
    chunks.Begin(session);
  }
  void End(SessionId session) {
    owners.Close(session);
    memories.Close(session);
    lanes.End(session);
    offers.End(session);
    constant_offers.End(session);
    pulls.End(session);
    chunks.End(session);
  }

  JobServers servers;  // for the Welcome; null: one server
  SessionOwners owners;
  SharedMemories memories;
  Lanes lanes;
  OfferTurns offers;
  OfferTurns constant_offers;
  std::shared_ptr<ConstantStore> constants;  // null on a server other than the first
  PullLimits pulls;
  SnapshotChunks chunks;
  VersionLog versions;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SESSION_RESOURCES_H_
