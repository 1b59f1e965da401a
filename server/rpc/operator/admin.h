// The Admin service of proto/sluice/v1/admin.proto.

#ifndef SLUICE_SERVER_RPC_OPERATOR_ADMIN_H_
#define SLUICE_SERVER_RPC_OPERATOR_ADMIN_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "server/durable/directory.h"
#include "server/shard/shard.h"

namespace sluice {

// Asks every caller for `token`, unless it is empty. `shard` and `durable`, where
// checkpoints are saved, outlive the service; null: nowhere.
std::unique_ptr<grpc::Service> MakeGrpcAdmin(std::string token, Shard& shard,
                                             DurableDirectory* durable);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_ADMIN_H_
