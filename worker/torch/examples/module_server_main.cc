// A model server: it computes forward and backward for trainers that hold no parameters.
//
//   module_server --server=127.0.0.1:7071 --at=127.0.0.1:7072
//
// The parameter server is sluice_server --listen=127.0.0.1:7071 --workers=N, for N trainers
// (module_trainer). With --part=convolutions and --part=classifier, two model servers have one half
// of the network each.

#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "common/launch/failure.h"
#include "worker/job.h"
#include "worker/job_flags.h"
#include "worker/torch/models/models.h"
#include "worker/torch/remote_module/serve_module.h"
#include "worker/torch/run_worker.h"
#include "worker/torch/threads.h"

namespace {

// The network of PyTorch's tutorial on parameter servers, for images of 28 x 28, in its two halves.
struct Convolutions : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv2->forward(torch::relu(conv1->forward(x))));
    x = torch::dropout(torch::max_pool2d(x, 2), 0.25, is_training());
    return torch::flatten(x, 1);
  }
  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(1, 32, 3));
  torch::nn::Conv2d conv2 = register_module("conv2", torch::nn::Conv2d(32, 64, 3));
};

struct Head : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    x = torch::dropout(torch::relu(fc1->forward(x)), 0.5, is_training());
    return fc2->forward(x);
  }
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(9216, 128));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(128, 10));
};

struct TutorialNet : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return head->forward(body->forward(x)); }
  std::shared_ptr<Convolutions> body = register_module("body", std::make_shared<Convolutions>());
  std::shared_ptr<Head> head = register_module("head", std::make_shared<Head>());
};

sluice::ModuleMaker MakerOf(const std::string& part) {
  if (part == "convolutions")
    return [] { return sluice::Served(std::make_shared<Convolutions>()); };
  if (part == "classifier") return [] { return sluice::Served(std::make_shared<Head>()); };
  if (part == "lenet") return [] { return sluice::Served(sluice::MakeModel("lenet")); };
  return [] { return sluice::Served(std::make_shared<TutorialNet>()); };
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Computes forward and backward for trainers.", "module_server");
  sluice::ServeModuleOptions serve{"127.0.0.1:7072"};
  std::string part = "tutorial";
  double learning_rate = 0.03;
  double momentum = 0;
  int threads = 1;
  sluice::JobFlags flags;
  app.add_option("--at", serve.address, "where trainers find this process: host:port or unix:/path")
      ->capture_default_str();
  app.add_option("--max-trainers", serve.max_trainers, "at once")->capture_default_str();
  app.add_option("--trainers", serve.trainers,
                 "end when so many have come and are gone; 0: as many as the job has workers")
      ->capture_default_str();
  app.add_option("--part", part,
                 "tutorial (all of its network), convolutions, classifier; or lenet")
      ->check(CLI::IsMember({"tutorial", "convolutions", "classifier", "lenet"}))
      ->capture_default_str();
  app.add_option("--learning-rate", learning_rate, "of SGD")->capture_default_str();
  app.add_option("--momentum", momentum, "of SGD")->capture_default_str();
  app.add_option("--threads", threads, "of arithmetic, for each trainer")->capture_default_str();
  sluice::AddJobFlags(app, flags);
  if (const auto code = sluice::ExitCodeOfLaunchedUsage(app, argc, argv)) return *code;
  const absl::Status placed = sluice::CheckFlagsOfServer(app, flags, {argv + 1, argv + argc});
  if (!placed.ok()) return sluice::ReportFailure("module_server", sluice::ShareFailure(placed));
  auto job = sluice::Job::Start(flags);
  if (!job.ok()) return sluice::ReportFailure("module_server", job.status());
  if (job->is_server()) return job->Serve();
  sluice::SetThreads(threads);
  return sluice::RunWorker("module_server", [&] {
    torch::manual_seed(1);
    sluice::ServeModule(*job, MakerOf(part),
                        torch::optim::SGDOptions(learning_rate).momentum(momentum), serve);
  });
}
