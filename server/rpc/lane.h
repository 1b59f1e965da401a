// PushLane and PullLane over gRPC: further connections of one push or pull.

#ifndef SLUICE_SERVER_RPC_LANE_H_
#define SLUICE_SERVER_RPC_LANE_H_

#include <grpcpp/grpcpp.h>

#include "server/rpc/pull.h"
#include "server/rpc/push.h"
#include "server/shard/shard.h"

namespace sluice {

// The pushes and pulls that have lanes. May be used by any thread.
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

// Serves one call of PushLane, whose messages are the bytes of PushGradientsRequest and
// PushLaneResponse; the reactor owns itself. `lanes` and `shard` outlive it.
grpc::ServerReadReactor<grpc::ByteBuffer>* ServePushLane(grpc::ByteBuffer* response, Lanes& lanes,
                                                         Shard& shard);

// One of PullLane, whose messages are those of Lane and PullParamsResponse.
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullLane(const grpc::ByteBuffer& request,
                                                          Lanes& lanes, Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_LANE_H_
