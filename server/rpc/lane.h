// The handlers of PushLane and PullLane. A lane is an additional call that carries chunks of one
// push or pull; parameter_server.proto defines it.

#ifndef SLUICE_SERVER_RPC_LANE_H_
#define SLUICE_SERVER_RPC_LANE_H_

#include <grpcpp/grpcpp.h>

#include "server/replica/parameter_store.h"
#include "server/rpc/pull.h"
#include "server/rpc/push.h"

namespace sluice {

// The calls that have lanes, and the lanes that wait for their calls. May be used by any thread.
struct Lanes {
  PushLanes pushes;
  PullLanes pulls;

  void Begin(SessionId session) {
    pushes.Begin(session);
    pulls.Begin(session);
  }
  void End(SessionId session) {
    pushes.End(session);
    pulls.End(session);
  }
};

// Serves one call of PushLane. Its messages are the bytes of PushGradientsRequest and
// PushLaneResponse. The reactor deletes itself when the call is done; `lanes` and `store` outlive
// it.
grpc::ServerReadReactor<grpc::ByteBuffer>* ServePushLane(grpc::ByteBuffer* response, Lanes& lanes,
                                                         ParameterStore& store);

// Serves one call of PullLane, whose messages are the bytes of Lane and PullParamsResponse.
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullLane(grpc::CallbackServerContext& context,
                                                          const grpc::ByteBuffer& request,
                                                          Lanes& lanes, ParameterStore& store);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_LANE_H_
