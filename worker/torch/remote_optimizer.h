// An optimizer whose parameters and state are on a server. The object also owns the connection: it
// joins the job, and copies the job's parameters into the model.
//
//   sluice::RemoteOptimizer optimizer(job, *model, torch::optim::SGDOptions(0.05).momentum(0.9));
//   optimizer.zero_grad();
//   loss.backward();
//   optimizer.step();
//
// The server has torch::optim's SGD, Adam, AdamW, Adagrad and RMSprop, and LAMB. With any other
// optimizer, also one of your own, each worker steps on the mean of all gradients (only in sync):
//
//   Lion lion(model->parameters(), LionOptions(1e-4));  // derives from torch::optim::Optimizer
//   sluice::RemoteOptimizer optimizer(job, *model, lion);

#ifndef SLUICE_WORKER_TORCH_REMOTE_OPTIMIZER_H_
#define SLUICE_WORKER_TORCH_REMOTE_OPTIMIZER_H_

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/protocol/optimizer_table.h"
#include "common/protocol/results.h"
#include "worker/job.h"
#include "worker/torch/remote_error.h"
#include "worker/torch/remote_step.h"
#include "worker/training/local_steps.h"

namespace sluice {

class RemoteTraining;
struct OptimizerConfig;

// Only the thread that trains the model may use it. The model must outlive it; the job need not.
// The constructors and all methods that call the server throw RemoteError if the server refuses the
// call, or cannot be reached and does not come back within --connect-timeout.
//
// After a RemoteError of step(), wait(), leave() or await_end_of_training() the model may hold a
// mixture of two steps, because a pull broke off: do not use or save it. The next step() drops its
// gradient, and pulls complete parameters. After an error of a constructor the model has its own.
class RemoteOptimizer {
 public:
  // Joins the job. If the job has no parameters yet, the model's become the job's; otherwise the
  // job's replace the model's. With `local`, torch::optim's optimizer runs in this process, and the
  // server averages parameters (see local_steps.h). Throws RemoteError if another RemoteOptimizer
  // of the job takes part: a second model has a name (Job::Model). Throws std::invalid_argument
  // - if `options` belong to an optimizer that is not in the list above,
  // - if FlatModel cannot hold the model,
  // - if `local` is combined with Overlap::kBackward, with a sparse push encoding, or with a
  //   RemoteEmbedding in the model.
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

  // Each worker steps, with `optimizer`, which outlives this: any but LBFGS. The server brings the
  // mean of all workers' gradients, so that all models stay equal. Nobody compares what the workers
  // step with: give all of them the same. A worker that comes late takes the parameters from
  // another one, and what that one's optimizer writes in save(), which a class of your own
  // overrides with load(), as those of torch do. Learning rates stay its own: step its scheduler
  // first_step() times. Throws std::invalid_argument unless the optimizer's groups hold all
  // parameters of the model that require a gradient, and no others. So does step() when that
  // changes. If a step of `optimizer` throws, only a process that is started again can go on.
  RemoteOptimizer(const Job& job, torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                  Overlap overlap = Overlap::kOff);

  // Waits for step_async(), and ends this worker's part if leave() was not called. Unlike leave(),
  // it does not push the local steps that are left over, and ignores errors.
  ~RemoteOptimizer();

  RemoteOptimizer(const RemoteOptimizer&) = delete;
  RemoteOptimizer& operator=(const RemoteOptimizer&) = delete;

  // Sets all gradients to 0. If backward has sent parts of them already, that push is given up.
  void zero_grad();

  // Attaches `data` to the next push, for the server's AttachmentHook. attachment.h has the limits.
  // With Overlap::kBackward, call it before backward(), because the push begins there.
  void attach(const std::string& type, const std::string& data);

  // The options of the optimizer, in groups as torch::optim has them: those of the constructor that
  // have parameters, after one for the parameters that are in none of them. Each push tells the
  // server those that the program has changed. A step is made with the options of the worker with
  // the lowest index that contributes to it. A learning rate that changes and the server's
  // --lr-schedule exclude each other: step() throws RemoteError then, and also if momentum or
  // amsgrad are switched on, whose slots the server has not kept. With local steps the groups are
  // those of torch::optim's optimizer, and a schedule of the server overrides their rates. Those of
  // an optimizer of the program's are its own. Throws std::invalid_argument for LAMB. step() does
  // if a group was added or removed.
  std::vector<torch::optim::OptimizerParamGroup>& param_groups();

  // Bounds the Euclidean norm of the mean gradient of the step that the next step() is part of, as
  // torch::nn::utils::clip_grad_norm_() does in one process. Call it before each step(). With local
  // steps it is that function, since the gradients are this worker's own. Throws RemoteError unless
  // `max_norm` is a finite number above 0.
  void clip_grad_norm(double max_norm);

  // The job's step when this process joined. A scheduler that is made anew does not know it: in
  // sync call its step() so many times before training goes on.
  uint64_t first_step() const { return first_step_; }

  // For schedulers, which change those groups: torch::optim::StepLR scheduler(optimizer, 30, 0.1).
  // What it returns is not for step() or save(): if the server steps, it has no state.
  operator torch::optim::Optimizer&();  // NOLINT(google-explicit-constructor)

  // Pushes the gradients of a batch of `samples` samples, waits until the job's mode lets this
  // worker continue, and writes the new parameters and statistics to the model. `loss` is the mean
  // of the batch: the server shows it to people, and tells by it whether training diverges; NaN
  // counts. The gradients of RemoteEmbeddings are pushed once: a step forgets them, unless it
  // throws.
  //
  // With local steps, each call takes one step with the local optimizer. Every LocalSteps::every-th
  // call also pushes the parameters; the other calls return the report of the last push again.
  RoundReport step(uint32_t samples = 1, absl::optional<float> loss = absl::nullopt);

  // If the worker steps: makes each gradient the mean of all workers'. step() then only steps, and
  // calls this if the program has not. For what is done to gradients before a step, such as
  // torch::nn::utils::clip_grad_value_(). Throws std::logic_error if the server steps.
  RoundReport reduce(uint32_t samples = 1, absl::optional<float> loss = absl::nullopt);

  // Does the same as step(), but returns at once, so that the next batch can be prepared while the
  // parameters arrive. (If the worker steps, it is the same as step().) Do not use the model or its
  // gradients before wait() returns. The next call of zero_grad(), attach(), step(), step_async(),
  // leave() or await_end_of_training() also waits, and throws the error of the step that it waited
  // for. report() may only be called after wait().
  PendingStep step_async(uint32_t samples = 1, absl::optional<float> loss = absl::nullopt);

  // Ends this worker's part: the others no longer wait for it. Local steps that were not pushed yet
  // are pushed first. After that, step() throws RemoteError.
  void leave();

  // Does the same as leave(), then waits until every worker has left, and writes the final
  // parameters to the model. Meanwhile this process observes the job, so that the server stays up.
  // Until report() the model's embeddings pull final rows.
  void await_end_of_training();

  // Ends this worker's part as if its process had died: the job waits for it to come again, for as
  // long as its lease. Only the destructor may follow.
  void abandon();

  // Ends this worker's part as a failure: the job takes it for lost at once. `why` is a sentence
  // for the server's log. The destructor does the same while an exception passes it; otherwise it
  // leaves. Errors are ignored. Only the destructor may follow.
  void fail(const std::string& why);

  // Sends results for the server's closing table. May be called once, after
  // await_end_of_training(); otherwise throws RemoteError.
  void report(const Results& results);

  // This worker's place, in [0, workers()), and how many workers were launched. They decide which
  // part of the data this worker takes. The place changes only if the worker has to join again.
  //
  // These two and the next two methods may be called while step_async() works. They then return
  // what held before it.
  uint32_t index() const;
  uint32_t workers() const;

  // The number of pushes of earlier processes in this worker's place. A worker that was started
  // again skips the batches of these pushes.
  uint64_t pushes_before() const;
  // The same of each worker, by its index, in launches of the job that are over: those batches are
  // taken, and the workers share the others (worker/data/batch_deal.h).
  const std::vector<std::vector<uint64_t>>& earlier_launches() const;

 private:
  std::unique_ptr<RemoteTraining> training_;
  uint64_t first_step_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_REMOTE_OPTIMIZER_H_
