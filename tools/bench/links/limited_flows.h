// A network that limits the speed of each TCP connection separately, as clouds limit a flow.
// Several connections carry more than one.

#ifndef SLUICE_TOOLS_BENCH_LINKS_LIMITED_FLOWS_H_
#define SLUICE_TOOLS_BENCH_LINKS_LIMITED_FLOWS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/net/address.h"

namespace sluice::bench {

class LimitedFlows {
 public:
  virtual ~LimitedFlows() = default;

  // Returns the address to connect to instead of the server.
  virtual const Address& address() const = 0;

  // Listens on `host` and relays each connection to the TCP address `server`. The kernel's pacing
  // limits each to `bytes_per_second` each way. The destructor ends all connections.
  static absl::StatusOr<std::unique_ptr<LimitedFlows>> Start(const std::string& host,
                                                             const Address& server,
                                                             uint32_t bytes_per_second);
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_LINKS_LIMITED_FLOWS_H_
