// Reads parameters from the shared memory of a server on this node.

#ifndef SLUICE_WORKER_CONNECTION_SHARED_PARAMETERS_H_
#define SLUICE_WORKER_CONNECTION_SHARED_PARAMETERS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/shared_memory.h"
#include "common/tensor/stripe_span.h"

namespace sluice {

// Maps each of the server's memories once: a server uses a few in turn. It is used by one thread.
class SharedParameters {
 public:
  // Copies the first to.size() elements of the memory. UNAVAILABLE if it cannot be reached; ABORTED
  // if it was written again meanwhile: `to` may then hold a mixture.
  absl::Status Read(const SharedMemoryName& name, uint64_t generation, const StripeSpan<float>& to);

 private:
  struct Mapped {
    uint64_t cookie;
    std::shared_ptr<const SharedMemoryView> view;
  };

  absl::StatusOr<std::shared_ptr<const SharedMemoryView>> ViewOf(const SharedMemoryName& name);

  std::vector<Mapped> mapped_;  // the newest last
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_SHARED_PARAMETERS_H_
