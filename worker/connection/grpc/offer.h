// What workers offer over gRPC: initial parameters, constants, and their models. And what they take
// that is neither parameters nor rows.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_OFFER_H_
#define SLUICE_WORKER_CONNECTION_GRPC_OFFER_H_

#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/wire/chunk.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// See ServerConnection::StartOffer. `stub` outlives the offer.
std::unique_ptr<PendingOffer> StartGrpcOffer(grpc::GenericStub& stub, SessionId session,
                                             uint32_t attempt, uint64_t elements,
                                             Checksums checksums, const CallMetadata& metadata);

// See ServerConnection::OfferConstants() and PullConstants().
absl::StatusOr<uint64_t> OfferConstantsOverGrpc(grpc::GenericStub& stub, SessionId session,
                                                uint64_t checksum,
                                                const std::vector<absl::Span<char>>& values,
                                                const CallMetadata& metadata);
absl::StatusOr<PulledConstants> PullConstantsOverGrpc(grpc::GenericStub& stub, SessionId session,
                                                      uint64_t bytes, const CallMetadata& metadata);

// See ServerConnection::PullState() and OfferState().
absl::StatusOr<PulledState> PullStateOverGrpc(grpc::GenericStub& stub, SessionId session,
                                              absl::optional<uint64_t> steps,
                                              const CallMetadata& metadata);
absl::Status OfferStateOverGrpc(grpc::GenericStub& stub, SessionId session,
                                const absl::StatusOr<std::string>& bytes,
                                const CallMetadata& metadata);

// See ServerConnection::PullSlots().
absl::StatusOr<PulledSlots> PullSlotsOverGrpc(grpc::GenericStub& stub, SessionId session,
                                              uint64_t elements, const CallMetadata& metadata);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_OFFER_H_
