// The handler of InitializeParams: one object per call.

#ifndef SLUICE_SERVER_RPC_INITIALIZE_H_
#define SLUICE_SERVER_RPC_INITIALIZE_H_

#include <grpcpp/grpcpp.h>

#include <functional>

#include "absl/status/status.h"
#include "common/encoding/transform_registry.h"
#include "server/replica/parameter_store.h"
#include "server/rpc/offer_turns.h"

namespace sluice {

// Serves one call: its header waits in `turns`, then its chunks are collected. Its messages are the
// bytes of InitializeParamsRequest and InitializeParamsResponse. `ready`, unless it is null,
// returns the error of an offer that comes too early. The reactor deletes itself when the call is
// done; `transforms`, `turns`, what `ready` uses, and `store` outlive it.
grpc::ServerReadReactor<grpc::ByteBuffer>* ServeInitialize(grpc::ByteBuffer* response,
                                                           const TransformRegistry& transforms,
                                                           OfferTurns* turns,
                                                           std::function<absl::Status()> ready,
                                                           ParameterStore& store);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_INITIALIZE_H_
