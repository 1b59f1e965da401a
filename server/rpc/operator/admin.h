// The Admin service: passes each call to the shard.
// proto/sluice/v1/admin.proto defines the calls and their errors.

#ifndef SLUICE_SERVER_RPC_OPERATOR_ADMIN_H_
#define SLUICE_SERVER_RPC_OPERATOR_ADMIN_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "server/durable/directory.h"
#include "server/operator/log_ring.h"
#include "server/rpc/operator/open_watches.h"
#include "server/shard/shard.h"

namespace sluice {

// SaveCheckpoint saves in `durable`; if that is null, it fails. ReadLogs tells the lines of `log`.
// All outlive the service, which the gRPC server calls from many threads.
std::unique_ptr<grpc::Service> MakeGrpcAdmin(Shard& shard, OpenWatches& watches,
                                             DurableDirectory* durable, const LogRing& log);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_ADMIN_H_
