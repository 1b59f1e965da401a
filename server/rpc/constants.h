// The handlers of OfferConstants and PullConstants: one object per call. Each deletes itself when
// the call is done.

#ifndef SLUICE_SERVER_RPC_CONSTANTS_H_
#define SLUICE_SERVER_RPC_CONSTANTS_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "server/durable/constant_store.h"
#include "server/rpc/offer_turns.h"
#include "server/shard/shard.h"

namespace sluice {

// Serves one offer: it waits in `turns`, then its bytes are collected. `turns`, `constants` and
// `shard` outlive it.
grpc::ServerReadReactor<grpc::ByteBuffer>* ServeOfferConstants(grpc::ByteBuffer* response,
                                                               OfferTurns& turns,
                                                               ConstantStore& constants,
                                                               Shard& shard);

// Sends the values to a session, whose right to use this call was checked.
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullConstants(SessionId session,
                                                               const ConstantStore& constants,
                                                               Shard& shard);

// NOT_INITIALIZED if the job's model has constants, and there are no values yet.
absl::Status CheckHasConstants(const ConstantStore& constants, const Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_CONSTANTS_H_
