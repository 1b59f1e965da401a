// The handler of WatchState: one object per call.

#ifndef SLUICE_SERVER_RPC_OPERATOR_WATCH_H_
#define SLUICE_SERVER_RPC_OPERATOR_WATCH_H_

#include <grpcpp/grpcpp.h>

#include "server/durable/directory.h"
#include "server/rpc/operator/open_watches.h"
#include "server/shard/shard.h"
#include "sluice/v1/inspector.pb.h"

namespace sluice {

// Serves one call: looks at the shard once per interval and writes the state when it has changed.
// The reactor deletes itself when the call is done; `shard`, `durable`, which may be null, and
// `watches` outlive it.
grpc::ServerWriteReactor<v1::ServerState>* ServeWatch(const v1::WatchStateRequest& request,
                                                      Shard& shard, const DurableDirectory* durable,
                                                      OpenWatches& watches);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_WATCH_H_
