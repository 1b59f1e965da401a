// A RemoteOptimizer's step: when its gradients leave, and how it is waited for.

#ifndef SLUICE_WORKER_TORCH_REMOTE_STEP_H_
#define SLUICE_WORKER_TORCH_REMOTE_STEP_H_

#include <cstdint>
#include <future>
#include <utility>

#include "worker/client/parameter_client.h"

namespace sluice {

// When gradients leave for the server.
enum class Overlap {
  kOff,  // all of them in step()
  // Those of float32 parameters on the CPU as soon as backward has them, about 1 MiB at a time,
  // through a thread of the optimizer's own; the rest in step(). For loops with one backward() for
  // a step() in which nothing else changes gradients: else backward() or step() throws
  // std::logic_error, and zero_grad() drops the gradient. Not with local steps.
  kBackward,
};

class RemoteOptimizer;

// A step under way. Its optimizer outlives it.
class PendingStep {
 public:
  // Waits until the model's parameters are those to go on with. Throws what step() would have.
  RoundReport wait();

 private:
  friend class RemoteOptimizer;
  PendingStep(RemoteOptimizer& optimizer, uint64_t number, std::shared_future<RoundReport> report)
      : optimizer_(&optimizer), number_(number), report_(std::move(report)) {}

  RemoteOptimizer* optimizer_;
  uint64_t number_;  // of the optimizer's asynchronous steps, from 1
  std::shared_future<RoundReport> report_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_REMOTE_STEP_H_
