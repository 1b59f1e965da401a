// An optimizer whose parameters and state are on a server. The object is also the connection: it
// joins the job, compares layouts, and copies the job's parameters into the model.
//
//   sluice::RemoteOptimizer optimizer(job, *model, torch::optim::SGDOptions(0.05).momentum(0.9));
//   optimizer.zero_grad();
//   loss.backward();
//   optimizer.step();
//
// The server has torch::optim's SGD, Adam, AdamW, Adagrad and RMSprop, and LAMB.

#ifndef SLUICE_WORKER_TORCH_REMOTE_OPTIMIZER_H_
#define SLUICE_WORKER_TORCH_REMOTE_OPTIMIZER_H_

#include <torch/torch.h>

#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/serial_executor.h"
#include "common/protocol/optimizer_config.h"
#include "common/protocol/protocol_types.h"
#include "worker/client/gradient_fingerprints.h"
#include "worker/client/parameter_client.h"
#include "worker/job.h"
#include "worker/torch/flat_model.h"
#include "worker/torch/gradient_watch.h"
#include "worker/torch/remote_error.h"
#include "worker/torch/remote_step.h"
#include "worker/training/local_steps.h"

namespace sluice {

// Only the thread that trains the model may use it. The job and the model must outlive it. Every
// method throws RemoteError if the server refuses the call or cannot be reached.
class RemoteOptimizer {
 public:
  // Joins the job. The first worker's parameters become the parameters of a new job; otherwise the
  // job's parameters replace the model's. With `local`, the worker itself runs the optimizer, with
  // torch::optim. Throws std::invalid_argument if `options` belong to an optimizer that is not in
  // the list above.
  RemoteOptimizer(const Job& job, torch::nn::Module& model,
                  const torch::optim::OptimizerOptions& options,
                  const absl::optional<LocalSteps>& local = absl::nullopt,
                  Overlap overlap = Overlap::kOff);

  // The same with parameter groups, which must hold all parameters of the model that require a
  // gradient. A group without options has `defaults`.
  RemoteOptimizer(const Job& job, torch::nn::Module& model,
                  const std::vector<torch::optim::OptimizerParamGroup>& groups,
                  const torch::optim::OptimizerOptions& defaults,
                  const absl::optional<LocalSteps>& local = absl::nullopt,
                  Overlap overlap = Overlap::kOff);

  // The same with LAMB. torch::optim has no LAMB, so it cannot be combined with local steps.
  RemoteOptimizer(const Job& job, torch::nn::Module& model, const LambOptions& options,
                  Overlap overlap = Overlap::kOff);

  // The same with Sluice's own type for options, in which groups name parameters.
  RemoteOptimizer(const Job& job, torch::nn::Module& model, const OptimizerConfig& config,
                  const absl::optional<LocalSteps>& local = absl::nullopt,
                  Overlap overlap = Overlap::kOff);

  // Calls leave() if the caller has not done so.
  ~RemoteOptimizer();

  RemoteOptimizer(const RemoteOptimizer&) = delete;
  RemoteOptimizer& operator=(const RemoteOptimizer&) = delete;

  void zero_grad();

  // Attaches a few bytes to the next push, for the server's AttachmentHook; before backward() if
  // gradients leave there. See attachment.h for how many.
  void attach(const std::string& type, const std::string& data);

  // Pushes the gradients of a batch of `samples`, waits as the job's mode says, and refreshes the
  // model's parameters and statistics. `loss` is shown to whoever inspects the server. With local
  // steps it does so every so many calls, with parameters; else it is the worker's own step, and
  // reports again what the last push did.
  RoundReport step(uint32_t samples = 1, absl::optional<float> loss = absl::nullopt);

  // As step(), but returns at once, so that the next batch can be prepared while the parameters
  // arrive. Until wait() the model must not be used, nor its gradients changed; every other method
  // waits by itself, and then throws what wait() would have.
  PendingStep step_async(uint32_t samples = 1, absl::optional<float> loss = absl::nullopt);

  // Ends this worker's part: the others no longer wait for it. Local steps that were not pushed yet
  // are pushed first.
  void leave();

  // As leave(), then waits until every worker has left, and takes the final parameters into the
  // model.
  void await_end_of_training();

  // After await_end_of_training(), once: results for the server's closing table.
  void report(const Results& results);

  // This worker's place among the job's workers, for its part of the data, and how many were
  // launched.
  uint32_t index() const { return client_->welcome().index; }
  uint32_t workers() const { return client_->welcome().workers; }

  // Pushes of earlier processes in this worker's place: so much of its part of the data is done.
  uint64_t pushes_before() const { return client_->welcome().pushes_before; }

 private:
  void TraceCompute() const;
  SharedFloats GatherGradients();
  friend class PendingStep;

  void BeginStep();
  void Await();
  void GiveUpEarly();
  void CheckSentEarly(const SharedFloats& gradient);
  RoundReport PushGradients(const SharedFloats& gradient, uint32_t samples,
                            absl::optional<float> loss);
  RoundReport TakeLocalStep(uint32_t samples, absl::optional<float> loss);
  RoundReport PushParameters(absl::optional<float> loss);
  void MoveTowardsCentre(absl::Span<float> values) const;
  void TakeStatistics(absl::Span<float> values) const;

  const Job& job_;
  FlatModel model_;
  const absl::optional<LocalSteps> local_;
  std::unique_ptr<torch::optim::Optimizer> local_optimizer_;
  std::vector<float> centre_;  // elastic averaging: the server's parameters that came last
  uint32_t local_steps_ = 0;   // since the last push, and their samples
  uint32_t local_samples_ = 0;
  RoundReport last_report_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<ParameterClient> observer_;  // from await_end_of_training() to report()
  const OptimizerConfig config_;               // as the server is told
  std::shared_future<RoundReport> pending_;    // of step_async(), until somebody has waited for it
  uint64_t async_steps_ = 0;
  std::unique_ptr<SerialExecutor> background_;  // made when it is needed; uses the client
  std::unique_ptr<GradientWatch> watch_;        // with Overlap::kBackward
  GradientFingerprints sent_early_;             // since the last step
  absl::Time computing_since_;                  // for the trace: the end of the last step
  bool left_ = false;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_REMOTE_OPTIMIZER_H_
