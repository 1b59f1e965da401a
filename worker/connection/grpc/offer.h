// An offer of initial parameters over gRPC.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_OFFER_H_
#define SLUICE_WORKER_CONNECTION_GRPC_OFFER_H_

#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/wire/chunk.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// See ServerConnection::StartOffer. `token` is empty if the server asks for none. `stub` outlives
// the offer.
std::unique_ptr<PendingOffer> StartGrpcOffer(grpc::GenericStub& stub, SessionId session,
                                             uint32_t attempt, uint64_t elements,
                                             Checksums checksums, const std::string& token);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_OFFER_H_
