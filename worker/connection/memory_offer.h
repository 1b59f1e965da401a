// The memory of a worker's gradients that it offers to a server, and what the server has said of
// it.

#ifndef SLUICE_WORKER_CONNECTION_MEMORY_OFFER_H_
#define SLUICE_WORKER_CONNECTION_MEMORY_OFFER_H_

#include <atomic>
#include <memory>
#include <utility>

#include "common/tensor/shared_memory.h"

namespace sluice {

// Any thread may call any method: a pull may tell of the server while a push starts.
class MemoryOffer {
 public:
  // `memory` may be null: then there is nothing to accept.
  explicit MemoryOffer(std::shared_ptr<const SharedMemory> memory) : memory_(std::move(memory)) {}

  // Notes what the server says. Until then the memory is not shared.
  void SetAccepted(bool accepted) {
    accepted_ = accepted && memory_ != nullptr;
    answered_ = true;
  }
  // Whether the server has said anything: it knows the session.
  bool answered() const { return answered_; }
  // This worker cannot read the server's memory, so that nothing is shared.
  void GiveUp() { given_up_ = true; }

  // Null unless the server reads it.
  std::shared_ptr<const SharedMemory> shared() const {
    return accepted_ && !given_up_ ? memory_ : nullptr;
  }

 private:
  const std::shared_ptr<const SharedMemory> memory_;
  std::atomic<bool> answered_{false};
  std::atomic<bool> accepted_{false};
  std::atomic<bool> given_up_{false};
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_MEMORY_OFFER_H_
