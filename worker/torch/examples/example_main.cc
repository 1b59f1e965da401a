// A program of one's own: a model that Sluice has never heard of, trained by a parameter server.
//
//   mpirun -n 4 example [LEARNING_RATE]    rank 0 serves, three workers train
//   example --sluice-server=host:port      a worker of a server that runs elsewhere

#include <torch/torch.h>

#include <iostream>
#include <string>

#include "worker/job.h"
#include "worker/torch/remote_optimizer.h"
#include "worker/torch/run_worker.h"

// Anything that derives from torch::nn::Module.
struct Net : torch::nn::Module {
  Net() {
    hidden = register_module("hidden", torch::nn::Linear(2, 32));
    output = register_module("output", torch::nn::Linear(32, 2));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::log_softmax(output->forward(torch::tanh(hidden->forward(x))), 1);
  }
  torch::nn::Linear hidden = nullptr;
  torch::nn::Linear output = nullptr;
};

void Train(const sluice::Job& job, double learning_rate) {
  auto model = std::make_shared<Net>();
  sluice::RemoteOptimizer optimizer(job, *model,
                                    torch::optim::SGDOptions(learning_rate).momentum(0.9));

  torch::manual_seed(optimizer.index());  // each worker draws data of its own
  for (int batch = 0; batch < 300; ++batch) {
    const torch::Tensor points = torch::randn({64, 2});
    const torch::Tensor inside = (points.square().sum(1) < 1).to(torch::kInt64);
    optimizer.zero_grad();
    const torch::Tensor loss = torch::nll_loss(model->forward(points), inside);
    loss.backward();
    optimizer.step(64, loss.item<float>());  // by the loss the server sees whether the job learns
    if (batch % 100 == 99 && job.speaks()) {
      std::cout << "batch " << batch + 1 << ": loss " << loss.item<float>() << std::endl;
    }
  }
}

int main(int argc, char** argv) {
  auto job = sluice::Job::Start(&argc, &argv);
  if (job.is_server()) return job.Serve();
  return sluice::RunWorker(argv[0], [&] { Train(job, argc > 1 ? std::stod(argv[1]) : 0.1); });
}
