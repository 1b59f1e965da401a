// A module whose parameters and computation are on a model server.
//
//   sluice::RemoteModule model(job);
//   const torch::Tensor loss = torch::nll_loss(model.forward(images), labels);
//   loss.backward();
//   model.step(images.size(0), loss.item<float>());
//
// This is the design of PyTorch's RPC parameter-server tutorial: the trainer holds no parameters.
// There, all trainers compute on one set of parameters while others change it. Here the parameters
// of a trainer stay as they are from its forward to its step.

#ifndef SLUICE_WORKER_TORCH_REMOTE_MODULE_REMOTE_MODULE_H_
#define SLUICE_WORKER_TORCH_REMOTE_MODULE_REMOTE_MODULE_H_

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "worker/client/round_report.h"
#include "worker/connection/module/module_session.h"
#include "worker/job.h"
#include "worker/torch/remote_error.h"
#include "worker/torch/unwinding.h"

namespace sluice {

class SharedModuleSession;  // of a RemoteModule and the gradient functions of its outputs

// Used by one thread; autograd may run backward on others. Methods throw RemoteError if the model
// server refuses a call or is gone, and std::invalid_argument for a tensor that cannot be sent.
class RemoteModule {
 public:
  // Enters the model server at `address`, or at that of --server if it is empty, under the job's
  // worker name. Waits for it up to --connect-timeout.
  explicit RemoteModule(const Job& job, const std::string& address = "");
  // The same with a session that exists already.
  explicit RemoteModule(std::unique_ptr<ModuleSession> session);

  // Calls leave() if nobody has called it, and ignores errors. If an exception that leaves the
  // owner's scope destroys this object, it does not call leave(): the job then takes this trainer
  // for lost.
  ~RemoteModule();

  RemoteModule(const RemoteModule&) = delete;
  RemoteModule& operator=(const RemoteModule&) = delete;

  // Computes the module's output, with the module's own shapes and types. Where autograd records,
  // the output has a gradient function: backward then adds to this trainer's gradient on the
  // server, and gives the gradients of those inputs that require one. Each output can be used for
  // one backward; backward throws std::logic_error if gradients of second order are asked for. The
  // output is on the CPU. An output that depends on no parameter has no gradient function.
  torch::Tensor forward(const std::vector<torch::Tensor>& inputs);
  torch::Tensor forward(const torch::Tensor& input) { return forward(std::vector{input}); }

  // Whether the next forward is in training mode (dropout, batch statistics). At first it is.
  void train(bool on = true) { training_ = on; }
  void eval() { train(false); }

  // Sets this trainer's gradient to 0, and gives up the outputs whose backward did not come. step()
  // does the same at its end, so a loop needs no zero_grad().
  void zero_grad();

  // This trainer's gradient, by the names of the module's parameters: what its backwards have added
  // up since its last step(). Without names, of all that are trained: at most 64 MiB at once.
  std::map<std::string, torch::Tensor> gradients(const std::vector<std::string>& parameters = {});

  // Calls a method that the server offers (ServedModule::methods; in Python methods=…), and returns
  // its tensors. They have no gradients.
  std::vector<torch::Tensor> call(const std::string& method,
                                  const std::vector<torch::Tensor>& arguments = {});

  // Pushes this trainer's gradient, of a batch of `samples` samples with the mean loss `loss`, as
  // RemoteOptimizer::step() does. If a backward has failed since the last step, throws its error
  // and pushes nothing. After an error of the parameter server, forward() may compute on a mixture
  // of two steps until a step() has succeeded.
  RoundReport step(uint32_t samples = 1, absl::optional<float> loss = absl::nullopt);

  // Ends this trainer's part: the others no longer wait for it.
  void leave();

  // Does the same as leave(), then waits until every worker has left. After that, forward() without
  // gradients computes on the final parameters.
  void await_end_of_training();

  // See RemoteOptimizer.
  uint32_t index() const { return place_.index; }
  uint32_t workers() const { return place_.workers; }
  uint64_t pushes_before() const { return place_.pushes_before; }

 private:
  void Leave(bool stay);

  ModulePlace place_;
  const std::shared_ptr<SharedModuleSession> session_;
  uint64_t calls_ = 0;
  bool training_ = true;
  const Unwinding unwinding_;
  bool left_ = false;
};

// Calls step() of all parts of one model at the same time. When all have ended, throws the first
// part's error, if there is one. Each part has a gate of its own: in the modes that drop gradients,
// one part's gradient may count and another's not.
std::vector<RoundReport> StepAll(const std::vector<RemoteModule*>& parts, uint32_t samples = 1,
                                 absl::optional<float> loss = absl::nullopt);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_REMOTE_MODULE_REMOTE_MODULE_H_
