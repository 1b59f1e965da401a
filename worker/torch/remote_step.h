// The step of a RemoteOptimizer: when it sends the gradients, and how the caller waits for it.

#ifndef SLUICE_WORKER_TORCH_REMOTE_STEP_H_
#define SLUICE_WORKER_TORCH_REMOTE_STEP_H_

#include <cstdint>
#include <future>
#include <utility>

#include "worker/client/round_report.h"

namespace sluice {

// When the optimizer sends gradients to the server.
enum class Overlap {
  kOff,  // step() sends all of them
  // A thread of the optimizer sends gradients while backward still runs, in parts of 1 MiB. This
  // works for float32 parameters on the CPU, in a model of which at least half is that; step()
  // sends the rest. The loop must call backward() once per step(), and nothing else may change
  // gradients. Otherwise backward() or step() throws std::logic_error; zero_grad() then drops the
  // gradient, and training can continue. It cannot be combined with local steps.
  kBackward,
};

class RemoteTraining;

// A step that step_async() has started. The thread that trains uses it. The optimizer must outlive
// it. If it is destroyed before wait(), the step continues, and the optimizer's next zero_grad(),
// step() or leave() waits for the step.
class PendingStep {
 public:
  // Waits until the model has the parameters to continue with. Throws the same errors as step().
  // A repeated call returns the same report.
  RoundReport wait();

 private:
  friend class RemoteTraining;
  PendingStep(RemoteTraining& training, uint64_t number, std::shared_future<RoundReport> report)
      : training_(&training), number_(number), report_(std::move(report)) {}

  RemoteTraining* training_;  // the optimizer's
  uint64_t number_;           // counts the optimizer's calls of step_async(), from 1
  std::shared_future<RoundReport> report_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_REMOTE_STEP_H_
