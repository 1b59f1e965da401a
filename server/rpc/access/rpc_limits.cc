#include "server/rpc/access/rpc_limits.h"

#include <algorithm>

namespace sluice {

int ConnectionsThatFit(const RpcLimits& limits, uint64_t descriptors) {
  constexpr uint64_t kFewest = 16;
  const uint64_t needed = kOtherDescriptors + static_cast<uint64_t>(limits.http_connections);
  const uint64_t others = std::min<uint64_t>(descriptors, needed);
  const uint64_t fit = (descriptors - others) / kDescriptorsOfConnection;
  return static_cast<int>(
      std::min<uint64_t>(static_cast<uint64_t>(limits.connections), std::max(fit, kFewest)));
}

absl::optional<int> ReadAheadBytes(uint32_t connections) {
  constexpr uint32_t kInAll = 64 << 20;
  constexpr uint32_t kEnough = 4 << 20;
  constexpr uint32_t kFewest = 64 << 10;
  const uint32_t of_each = kInAll / std::max(connections, 1U);
  if (of_each >= kEnough) return absl::nullopt;
  return static_cast<int>(std::max(of_each, kFewest));
}

}  // namespace sluice
