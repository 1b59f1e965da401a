#include "server/rpc/access/rpc_limits.h"

#include <algorithm>

namespace sluice {

int ConnectionsThatFit(const RpcLimits& limits, uint64_t descriptors) {
  constexpr uint64_t kFewest = 16;
  const uint64_t others = std::min<uint64_t>(descriptors, kOtherDescriptors);
  const uint64_t fit = (descriptors - others) / kDescriptorsOfConnection;
  return static_cast<int>(
      std::min<uint64_t>(static_cast<uint64_t>(limits.connections), std::max(fit, kFewest)));
}

}  // namespace sluice
