// What a caller of the Probe service asks for; probe.proto defines it.

#ifndef SLUICE_SERVER_RPC_PROBE_REQUEST_H_
#define SLUICE_SERVER_RPC_PROBE_REQUEST_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/tensor/shared_memory.h"

namespace sluice {

struct ProbeRequest {
  enum class Kind { kEcho, kChunk, kSend };

  Kind kind = Kind::kEcho;
  absl::optional<SharedMemoryName> memory;  // of an echo, if it names some; it may not exist
  uint64_t elements = 0;                    // of a chunk: 1 to kChunkElements
  uint32_t chunks = 0;                      // that are to be sent: 1 to ProbeLimits::kMostAsked
};

// Reads a MeasureRequest, which may be any bytes, and checks a chunk's checksum. Errors:
// BAD_ARGUMENT, BAD_CHUNK, CORRUPT_CHUNK.
absl::StatusOr<ProbeRequest> ReadProbeRequest(const grpc::ByteBuffer& message);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_PROBE_REQUEST_H_
