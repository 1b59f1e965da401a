// What a caller may not do whose certificate makes it an observer but no worker: take part in
// training, or meddle with the session of one who does.
//
// server/rpc/access/method_roles.h lets it open a session and pull; these checks look at what it
// asks for.

#ifndef SLUICE_SERVER_RPC_ACCESS_OBSERVER_H_
#define SLUICE_SERVER_RPC_ACCESS_OBSERVER_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/rpc/access/observer_pulls.h"
#include "server/shard/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// OK for a worker; an observer must join as one, under a name that no worker has (WRONG_ROLE), and
// there must be room for it (TOO_MANY_WORKERS).
absl::Status CheckMayJoin(const grpc::CallbackServerContext& context,
                          const v1::JoinRequest& request, const Shard& shard);

// OK for a worker; for an observer unless the session is a worker's. WRONG_ROLE.
absl::Status CheckMayUse(const grpc::CallbackServerContext& context, SessionId session,
                         const Shard& shard);

// The same for the session in the bytes of a PullParamsRequest; those that are none are left to be
// refused where they are read. An observer may not choose an encoding, of which a server keeps a
// few for its workers, and gets a permit out of `pulls`.
absl::StatusOr<PullPermit> CheckMayPull(const grpc::CallbackServerContext& context,
                                        const grpc::ByteBuffer& request, const Shard& shard,
                                        ObserverPulls& pulls);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_OBSERVER_H_
