// What workers offer over gRPC: initial parameters, constants, and their models.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_OFFER_H_
#define SLUICE_WORKER_CONNECTION_GRPC_OFFER_H_

#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/wire/chunk.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// See ServerConnection::StartOffer. `token` is empty if the server asks for none. `stub` outlives
// the offer.
std::unique_ptr<PendingOffer> StartGrpcOffer(grpc::GenericStub& stub, SessionId session,
                                             uint32_t attempt, uint64_t elements,
                                             Checksums checksums, const std::string& token);

// See ServerConnection::OfferConstants() and PullConstants().
absl::StatusOr<uint64_t> OfferConstantsOverGrpc(grpc::GenericStub& stub, SessionId session,
                                                uint64_t checksum,
                                                const std::vector<absl::Span<char>>& values,
                                                const std::string& token);
absl::StatusOr<PulledConstants> PullConstantsOverGrpc(grpc::GenericStub& stub, SessionId session,
                                                      uint64_t bytes, const std::string& token);

// See ServerConnection::PullState() and OfferState().
absl::StatusOr<PulledState> PullStateOverGrpc(grpc::GenericStub& stub, SessionId session,
                                              absl::optional<uint64_t> steps,
                                              const std::string& token);
absl::Status OfferStateOverGrpc(grpc::GenericStub& stub, SessionId session,
                                const absl::StatusOr<std::string>& bytes, const std::string& token);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_OFFER_H_
