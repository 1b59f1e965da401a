// The Inspector service: reads the shard's state, changes nothing.

#ifndef SLUICE_SERVER_RPC_OPERATOR_INSPECTOR_H_
#define SLUICE_SERVER_RPC_OPERATOR_INSPECTOR_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/shard/shard.h"

namespace sluice {

// `shard` outlives the service.
std::unique_ptr<grpc::Service> MakeGrpcInspector(const Shard& shard);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_INSPECTOR_H_
