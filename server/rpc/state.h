// The handlers of PullState and OfferState: one object per call. Each deletes itself when the call
// is done.

#ifndef SLUICE_SERVER_RPC_STATE_H_
#define SLUICE_SERVER_RPC_STATE_H_

#include <grpcpp/grpcpp.h>

#include "server/shard/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// Waits for the model, then sends it to the session. `shard` outlives it.
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullState(const v1::PullStateRequest& request,
                                                           Shard& shard);

// Collects a model, and hands it on.
grpc::ServerReadReactor<grpc::ByteBuffer>* ServeOfferState(grpc::ByteBuffer* response,
                                                           Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_STATE_H_
