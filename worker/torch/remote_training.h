// What a RemoteOptimizer does: the joining, the pushes and pulls, and the thread beside them.

#ifndef SLUICE_WORKER_TORCH_REMOTE_TRAINING_H_
#define SLUICE_WORKER_TORCH_REMOTE_TRAINING_H_

#include <torch/torch.h>

#include <cstdint>
#include <future>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/serial_executor.h"
#include "common/protocol/optimizer_config.h"
#include "common/protocol/protocol_types.h"
#include "worker/client/gradient_fingerprints.h"
#include "worker/client/parameter_client.h"
#include "worker/torch/batch_norms.h"
#include "worker/torch/client_rows.h"
#include "worker/torch/flat_model.h"
#include "worker/torch/gradient_watch.h"
#include "worker/torch/local_training.h"
#include "worker/torch/remote_step.h"
#include "worker/torch/unwinding.h"
#include "worker/torch/worker_steps.h"
#include "worker/training/local_steps.h"
#include "worker/worker_context.h"

namespace sluice {

// Who steps: the server with `config`; or this worker, with that and local steps, or with the
// program's optimizer.
struct Stepping {
  OptimizerConfig config = {};
  absl::optional<LocalSteps> local = absl::nullopt;
  torch::optim::Optimizer* program = nullptr;  // null: not with that
};

// The methods are those of RemoteOptimizer (remote_optimizer.h), with the same threads and errors.
class RemoteTraining {
 public:
  // The model and the program's optimizer outlive it.
  RemoteTraining(WorkerContext context, torch::nn::Module& model, const Stepping& stepping,
                 Overlap overlap);
  ~RemoteTraining();

  RemoteTraining(const RemoteTraining&) = delete;
  RemoteTraining& operator=(const RemoteTraining&) = delete;

  void ZeroGradients();
  void Attach(const std::string& type, const std::string& data);
  RoundReport Step(uint32_t samples, absl::optional<float> loss);
  PendingStep StepAsync(uint32_t samples, absl::optional<float> loss);
  RoundReport Reduce(uint32_t samples, absl::optional<float> loss);
  void Leave();
  void AwaitEndOfTraining();
  void Abandon() {
    left_ = true;
    part_ = nullptr;
  }
  void Fail(const std::string& why);
  void Report(const Results& results);
  torch::optim::Optimizer& ProgramOptimizer();
  void ClipNorm(double max_norm);

  // Those of the client, when the last step ended.
  const Welcome& welcome() const { return welcome_; }
  uint64_t step() const { return last_report_.step.value(); }

  // Waits for StepAsync(): for the call with that number, counted from 1, or for the latest.
  void Await(uint64_t number);
  void Await();

 private:
  SharedFloats GatherGradients();
  void BeginStep();
  void EndStep(const RoundReport& report);
  void GiveUpEarly();
  void CheckSentEarly(const SharedFloats& gradient);
  RoundReport PushGradients(const SharedFloats& gradient, uint32_t samples,
                            absl::optional<float> loss);
  RoundReport TakeLocalStep(uint32_t samples, absl::optional<float> loss);

  const WorkerContext context_;
  const torch::nn::Module& module_;
  FlatModel model_;
  BatchNorms norms_;
  std::unique_ptr<LocalTraining> local_;  // null without local steps
  std::unique_ptr<WorkerSteps> steps_;    // null unless the program's optimizer steps
  RoundReport last_report_;
  Welcome welcome_;  // the client's, when the last step ended
  std::unique_ptr<ParameterClient> client_;
  std::shared_ptr<ClientRows> rows_;           // of the model's embeddings
  std::unique_ptr<ParameterClient> observer_;  // from await_end_of_training() to report()
  const OptimizerConfig config_;               // the server's optimizer
  // Of the program's options, for its schedulers; it takes no step. Null until somebody asks for
  // it.
  std::unique_ptr<torch::optim::Optimizer> program_;
  ChangedOptions::Groups changed_;           // in it, when the step began
  std::shared_future<RoundReport> pending_;  // valid while nobody has waited for step_async()
  uint64_t async_steps_ = 0;
  uint64_t constants_pulled_ = 0;               // when the model's constants were scattered last
  std::unique_ptr<SerialExecutor> background_;  // made when it is needed; its tasks use client_
  std::unique_ptr<GradientWatch> watch_;        // null without Overlap::kBackward
  GradientFingerprints sent_early_;             // of the parts that have left since the last step
  absl::Time computing_since_;                  // the end of the last step; for the trace
  const Unwinding unwinding_;
  std::shared_ptr<const void> part_;  // until it has left: see WorkerContext::TakePart()
  bool left_ = false;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_REMOTE_TRAINING_H_
