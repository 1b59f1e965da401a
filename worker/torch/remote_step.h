// The step of a RemoteOptimizer: when it sends the gradients, and how the caller waits for it.

#ifndef SLUICE_WORKER_TORCH_REMOTE_STEP_H_
#define SLUICE_WORKER_TORCH_REMOTE_STEP_H_

#include <cstdint>
#include <future>
#include <utility>

#include "worker/client/parameter_client.h"

namespace sluice {

// When the optimizer sends gradients to the server.
enum class Overlap {
  kOff,  // all of them in step()
  // Gradients of float32 parameters on the CPU leave as soon as backward has computed them, about
  // 1 MiB at a time, through the optimizer's own thread. step() sends the rest. The loop must call
  // backward() once per step(), and nothing else may change gradients. Otherwise backward() or
  // step() throws std::logic_error, and zero_grad() drops the gradient. Not with local steps.
  kBackward,
};

class RemoteOptimizer;

// A step that has started. The optimizer must outlive it.
class PendingStep {
 public:
  // Waits until the model has the parameters to continue with. Throws the same errors as step().
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
