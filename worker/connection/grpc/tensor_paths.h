// The ways that the tensors of a worker's session take to a server: shared memory, or one
// connection or several.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_TENSOR_PATHS_H_
#define SLUICE_WORKER_CONNECTION_GRPC_TENSOR_PATHS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/security/credentials_source.h"
#include "common/tensor/shared_memory.h"
#include "worker/connection/connection_chooser.h"
#include "worker/connection/grpc/lanes.h"
#include "worker/connection/memory_offer.h"

namespace sluice {

// Used by one thread.
class TensorPaths {
 public:
  // `connections` to the server, or 0: as many as are fast. That is one if it is `near`, which
  // means in a process of this machine. A server on a unix socket has one.
  TensorPaths(const std::string& address, const CredentialsSource& credentials, int connections,
              bool near);

  // Begins a session with a server that holds `elements` elements of the vector. `memory` is that
  // of the worker's gradients, or null.
  void Begin(SessionId session, uint64_t elements, std::shared_ptr<const SharedMemory> memory);
  void End() { offer_ = nullptr; }
  // The server is gone.
  void CloseLanes() { lanes_.Close(); }

  // The memory that was offered to the server; null without a session.
  const std::shared_ptr<MemoryOffer>& offer() const { return offer_; }
  // The memory that the server reads, or null.
  std::shared_ptr<const SharedMemory> memory() const {
    return offer_ == nullptr ? nullptr : offer_->shared();
  }

  // The lanes of the next push or pull. None beside shared memory.
  LaneUse UseLanes();
  // Learns how long pushes take; null if nothing is chosen. Valid until Begin().
  ConnectionChooser* chooser() { return chooser_.has_value() ? &*chooser_ : nullptr; }
  bool measures_push() const {
    return chooser_.has_value() && chooser_->measures() && memory() == nullptr;
  }

 private:
  GrpcLanes lanes_;
  const bool automatic_;
  const int most_;
  SessionId session_;
  int connections_ = 1;
  absl::optional<ConnectionChooser> chooser_;  // if automatic, and more than one is worth it
  uint64_t calls_ = 0;                         // pushes and pulls that had lanes
  std::shared_ptr<MemoryOffer> offer_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_TENSOR_PATHS_H_
