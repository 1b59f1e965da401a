// The memory of the constants of a program's model, one piece for each constant of the layout, in
// its order.

#ifndef SLUICE_WORKER_CLIENT_CONSTANT_MEMORY_H_
#define SLUICE_WORKER_CLIENT_CONSTANT_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/tensor/constant_tensor.h"
#include "worker/connection/server_connection.h"

namespace sluice {

using ConstantMemory = std::vector<absl::Span<char>>;

// BAD_ARGUMENT names the constant whose memory has another size.
absl::Status CheckFits(const ConstantMemory& memory, const std::vector<ConstantTensor>& constants);

// The XXH3-64 of all bytes.
uint64_t ChecksumOf(const ConstantMemory& memory);

// Offers them to a job that has none, for as long as other offers are before it. Returns the
// XXH3-64 of the job's, which may be another worker's. `checksum` is theirs.
absl::StatusOr<uint64_t> OfferConstants(ServerConnection& connection, SessionId session,
                                        const std::string& worker, uint64_t checksum,
                                        const ConstantMemory& memory);

// Pulls the job's constants into `memory`, again if they were damaged on their way, and returns
// their XXH3-64. After an error `memory` is unchanged.
absl::StatusOr<uint64_t> PullConstants(ServerConnection& connection, SessionId session,
                                       const ConstantMemory& memory);

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_CONSTANT_MEMORY_H_
