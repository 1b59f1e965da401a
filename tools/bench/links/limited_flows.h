// A network that holds back each TCP connection by itself, as clouds limit a flow: whatever one
// carries, another carries beside it.

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

  // Where to connect to in place of the server.
  virtual const Address& address() const = 0;

  // Listens on `host`, and relays each connection to `server`, a TCP address, at no more than so
  // many bytes per second each way, by the kernel's pacing. Ends all when it ends.
  static absl::StatusOr<std::unique_ptr<LimitedFlows>> Start(const std::string& host,
                                                             const Address& server,
                                                             uint32_t bytes_per_second);
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_LINKS_LIMITED_FLOWS_H_
