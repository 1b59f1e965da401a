// What a caller may not do whose certificate makes it an observer but no worker: take part in
// training, or meddle with the session of one who does.
//
// server/method_roles.h lets it open a session and pull; these checks look at what it asks for.

#ifndef SLUICE_SERVER_GRPC_OBSERVER_H_
#define SLUICE_SERVER_GRPC_OBSERVER_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "common/ids.h"
#include "server/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// OK for a worker; an observer must join as one, under a name that no worker has. WRONG_ROLE.
absl::Status CheckMayJoin(const grpc::CallbackServerContext& context,
                          const v1::JoinRequest& request, const Shard& shard);

// OK for a worker; for an observer unless the session is a worker's. WRONG_ROLE.
absl::Status CheckMayUse(const grpc::CallbackServerContext& context, SessionId session,
                         const Shard& shard);

// The same for the session in the bytes of a PullParamsRequest; those that are none are left to be
// refused where they are read.
absl::Status CheckMayPull(const grpc::CallbackServerContext& context,
                          const grpc::ByteBuffer& request, const Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_GRPC_OBSERVER_H_
