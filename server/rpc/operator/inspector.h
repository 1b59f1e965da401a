// The Inspector service: shows the shard's state and changes nothing. README.md says how to add an
// RPC. proto/sluice/v1/inspector.proto defines the calls and their errors.

#ifndef SLUICE_SERVER_RPC_OPERATOR_INSPECTOR_H_
#define SLUICE_SERVER_RPC_OPERATOR_INSPECTOR_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/durable/directory.h"
#include "server/observe/job_verdict.h"
#include "server/rpc/operator/open_watches.h"
#include "server/shard/shard.h"

namespace sluice {

// The gRPC server calls the service from many threads. `durable` is where checkpoints are
// saved; null: nowhere. `models` is null if there is one model. All outlive the service. The state
// of the model without a name has the verdict of the whole job; `has_name`: it is another model.
std::unique_ptr<grpc::Service> MakeGrpcInspector(Shard& shard, OpenWatches& watches,
                                                 const DurableDirectory* durable,
                                                 NamedShards models, bool has_name);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_INSPECTOR_H_
