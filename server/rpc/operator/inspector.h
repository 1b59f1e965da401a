// The Inspector service: shows the shard's state and changes nothing. README.md says how to add an
// RPC. proto/sluice/v1/inspector.proto defines the calls and their errors.

#ifndef SLUICE_SERVER_RPC_OPERATOR_INSPECTOR_H_
#define SLUICE_SERVER_RPC_OPERATOR_INSPECTOR_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/durable/directory.h"
#include "server/rpc/operator/open_watches.h"
#include "server/shard/shard.h"

namespace sluice {

// Returns the names of the job's models that have one.
using ModelNames = std::function<std::vector<std::string>()>;

// The gRPC server calls the service from many threads. `durable` is where checkpoints are
// saved; null: nowhere. `models` is null if there is one model. All outlive the service.
std::unique_ptr<grpc::Service> MakeGrpcInspector(Shard& shard, OpenWatches& watches,
                                                 const DurableDirectory* durable,
                                                 ModelNames models);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_INSPECTOR_H_
