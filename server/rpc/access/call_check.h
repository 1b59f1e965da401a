// The checks that gRPC makes for each call, on any connection, before a method sees the call.

#ifndef SLUICE_SERVER_RPC_ACCESS_CALL_CHECK_H_
#define SLUICE_SERVER_RPC_ACCESS_CALL_CHECK_H_

#include <grpc/grpc_security.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"

namespace sluice {

// gRPC's threads call it once for each call that begins.
using CallBegun = std::function<void()>;

// Returns RESOURCE_EXHAUSTED if the call's metadata have more than RpcLimits::kMetadataBytes. gRPC
// itself enforces that limit only for callers that acknowledge its settings.
absl::Status CheckMetadata(const grpc_metadata* metadata, size_t count);

// Makes credentials for connections without TLS, which call `begun` for each call. Keep the
// returned object as long as the gRPC server.
std::shared_ptr<grpc::ServerCredentials> MakePlaintextServerCredentials(CallBegun begun);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_CALL_CHECK_H_
