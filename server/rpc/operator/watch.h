// The handler of WatchState: one object per call.

#ifndef SLUICE_SERVER_RPC_OPERATOR_WATCH_H_
#define SLUICE_SERVER_RPC_OPERATOR_WATCH_H_

#include <grpcpp/grpcpp.h>

#include <functional>

#include "server/rpc/operator/open_watches.h"
#include "sluice/v1/inspector.pb.h"

namespace sluice {

// Serves one call: asks `look` for the state once per interval and writes it when it has changed.
// The reactor deletes itself when the call is done; what `look` uses, and `watches`, outlive it.
grpc::ServerWriteReactor<v1::ServerState>* ServeWatch(const v1::WatchStateRequest& request,
                                                      std::function<v1::ServerState()> look,
                                                      OpenWatches& watches);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_WATCH_H_
