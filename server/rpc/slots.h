// The call PullSlots: a worker takes what the server's optimizer remembers, to save it.

#ifndef SLUICE_SERVER_RPC_SLOTS_H_
#define SLUICE_SERVER_RPC_SLOTS_H_

#include <grpcpp/grpcpp.h>

#include "server/rpc/turns.h"
#include "server/shard/shard.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// Copies the slots, as for a checkpoint, and sends them. `turns` bounds how many copies there are
// at once. Both outlive the call.
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullSlots(const v1::PullSlotsRequest& request,
                                                           Turns& turns, Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SLOTS_H_
