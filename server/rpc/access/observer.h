// Checks for callers whose certificate has the role observer and not the role worker. They may not
// take part in training, nor use or end a session of anybody else.
//
// method_roles.h lets them call Join, JoinInParts, Heartbeat, PullConstants, PullParams, PullRows
// and Leave. The services call these functions to check the requests. For a caller with the role
// worker all of them return OK.

#ifndef SLUICE_SERVER_RPC_ACCESS_OBSERVER_H_
#define SLUICE_SERVER_RPC_ACCESS_OBSERVER_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "server/rpc/access/session_owners.h"
#include "server/shard/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// Whether the caller has the role worker. Other callers may only observe.
bool MayTrain(const grpc::CallbackServerContext& context);

// Checks a Join. WRONG_ROLE if the request asks for another role than observer, if its name belongs
// to a worker, or if it belongs to another process of an observer whose session is open.
// TOO_MANY_WORKERS if RpcLimits::kObservers other observers are there.
absl::Status CheckMayJoin(const grpc::CallbackServerContext& context,
                          const v1::JoinRequest& request, const Shard& shard);

// Checks a call that names a session. WRONG_ROLE if it is a worker's session, UNKNOWN_SESSION if it
// was not joined on the caller's connection.
absl::Status CheckMayUse(const grpc::CallbackServerContext& context, SessionId session,
                         const SessionOwners& owners);

// Checks a pull, whose `request` holds the bytes of a PullParamsRequest. Returns the errors of
// CheckMayUse(), and WRONG_ROLE if the request chooses an encoding. Bytes that cannot be decoded
// pass this check; the pull's handler refuses them.
absl::Status CheckMayPull(const grpc::CallbackServerContext& context,
                          const grpc::ByteBuffer& request, const SessionOwners& owners);
// The same for the bytes of a PullRowsRequest.
absl::Status CheckMayPullRows(const grpc::CallbackServerContext& context,
                              const grpc::ByteBuffer& request, const SessionOwners& owners);

// Checks a Leave or a heartbeat. WRONG_ROLE if it reports results, because the server shows them as
// the job's.
absl::Status CheckMayReport(const grpc::CallbackServerContext& context,
                            const v1::LeaveRequest& request);
absl::Status CheckMayReport(const grpc::CallbackServerContext& context,
                            const v1::HeartbeatRequest& request);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_OBSERVER_H_
