// Checks for callers whose certificate has the role observer and not the role worker. They may not
// take part in training, nor use or end a session of anybody else.
//
// method_roles.h lets them call Join, Heartbeat, PullParams and Leave; parameter_service.cc calls
// these functions to check the requests. For a caller with the role worker all return OK.

#ifndef SLUICE_SERVER_RPC_ACCESS_OBSERVER_H_
#define SLUICE_SERVER_RPC_ACCESS_OBSERVER_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "server/rpc/access/session_owners.h"
#include "server/shard/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// An observer must join as an observer, with a name that no worker has and no other process of an
// observer whose session is open (WRONG_ROLE), and there must be fewer than RpcLimits::kObservers
// others (TOO_MANY_WORKERS).
absl::Status CheckMayJoin(const grpc::CallbackServerContext& context,
                          const v1::JoinRequest& request, const Shard& shard);

// An observer may not use a worker's session (WRONG_ROLE), nor one that was joined on another
// connection (UNKNOWN_SESSION).
absl::Status CheckMayUse(const grpc::CallbackServerContext& context, SessionId session,
                         const SessionOwners& owners);

// Checks a pull: `request` is the bytes of a PullParamsRequest. An observer may use sessions as
// above, and may not choose an encoding (WRONG_ROLE). Bytes that cannot be decoded pass here; the
// pull's handler refuses them.
absl::Status CheckMayPull(const grpc::CallbackServerContext& context,
                          const grpc::ByteBuffer& request, const SessionOwners& owners);

// An observer may not report results (WRONG_ROLE), which the server shows as the job's.
absl::Status CheckMayReport(const grpc::CallbackServerContext& context,
                            const v1::LeaveRequest& request);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_OBSERVER_H_
