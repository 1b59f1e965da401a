// Serves a module to trainers that hold no parameters (RemoteModule).
//
//   auto job = sluice::Job::Start(&argc, &argv);
//   if (job.is_server()) return job.Serve();
//   return sluice::RunWorker(argv[0], [&] {
//     sluice::ServeModule(job, [] { return sluice::Served(std::make_shared<Net>()); },
//                         torch::optim::SGDOptions(0.05), {"127.0.0.1:7072"});
//   });
//
// The program is a model server: the parameter server, which knows no LibTorch, is another process.

#ifndef SLUICE_WORKER_TORCH_REMOTE_MODULE_SERVE_MODULE_H_
#define SLUICE_WORKER_TORCH_REMOTE_MODULE_SERVE_MODULE_H_

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/connection/module/module_host.h"
#include "worker/connection/module/module_session.h"
#include "worker/job.h"

namespace sluice {

// A module and the function that computes its output. The function is called by one thread at a
// time.
struct ServedModule {
  using Method = std::function<std::vector<torch::Tensor>(const std::vector<torch::Tensor>&)>;

  std::shared_ptr<torch::nn::Module> module;
  std::function<torch::Tensor(const std::vector<torch::Tensor>& inputs)> forward;
  // What a trainer may call besides, by its name, under torch::NoGradGuard: RemoteModule::call().
  std::map<std::string, Method> methods = {};
};

// A module whose forward() takes one tensor and returns one.
template <typename Net>
ServedModule Served(std::shared_ptr<Net> net) {
  return {net, [net](const std::vector<torch::Tensor>& inputs) -> torch::Tensor {
            if (inputs.size() != 1) {
              throw std::invalid_argument("the module takes 1 input, found " +
                                          std::to_string(inputs.size()));
            }
            return net->forward(inputs[0]);
          }};
}

// Makes one trainer's module; all of them must have the same layout. Threads of several trainers
// may call it at once.
using ModuleMaker = std::function<ServedModule()>;

struct ServeModuleOptions {
  // Where trainers find this process: host:port, or unix:/path. Beyond this machine --tls-cert,
  // --tls-key and --tls-ca are needed; they are read once.
  std::string address;
  uint32_t max_trainers = 64;  // at once
  uint32_t trainers = 0;       // that ServeModule() waits for; 0: as many as the job has workers
};

// Starts to serve. Each trainer becomes a worker of the job, under its own name, with a module and
// a gradient of its own, and the job's encodings. So the process holds, for each trainer, what a
// worker holds: two vectors of the model's size, up to five more with a lossy push encoding; and
// the intermediate results of the trainer's last forwards. The job must outlive the host. Throws
// RemoteError if it cannot listen, and std::invalid_argument if `optimizer` is not one that
// RemoteOptimizer takes.
std::unique_ptr<ModuleHost> StartModuleHost(const Job& job, ModuleMaker make,
                                            const torch::optim::OptimizerOptions& optimizer,
                                            const ServeModuleOptions& options);

// Serves until all trainers have come and have left, or were gone for --connect-timeout.
void ServeModule(const Job& job, ModuleMaker make, const torch::optim::OptimizerOptions& optimizer,
                 const ServeModuleOptions& options);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_REMOTE_MODULE_SERVE_MODULE_H_
