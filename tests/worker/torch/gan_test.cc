// A generator and a critic in one process, each with an optimizer: two models of one job.

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/running_server.h"
#include "tests/testing/shard/shard_world.h"
#include "worker/job_flags.h"
#include "worker/torch/remote_optimizer.h"

namespace sluice {
namespace {

constexpr int kSteps = 30;

torch::Tensor Drawn(int seed, int rows) {
  return torch::randn({rows, 2}, at::make_generator<at::CPUGeneratorImpl>(seed));
}

struct Gan {
  Gan() : generator(Made(1, 2)), critic(Made(2, 1)) {}

  static torch::nn::Sequential Made(int seed, int outputs) {
    torch::manual_seed(seed);
    return torch::nn::Sequential(torch::nn::Linear(2, 8), torch::nn::Tanh(),
                                 torch::nn::Linear(8, outputs));
  }

  // `part` of `parts` of each batch.
  template <typename Optimizer>
  void Train(Optimizer& makes, Optimizer& judges, int part, int parts) {
    const auto own = [part, parts](const torch::Tensor& batch) {
      return batch.index({torch::indexing::Slice(part, torch::indexing::None, parts)});
    };
    for (int step = 0; step < kSteps; ++step) {
      const torch::Tensor real = own(Drawn(step, 8) + 3), noise = own(Drawn(1000 + step, 8));
      judges.zero_grad();
      (torch::softplus(-critic->forward(real)).mean() +
       torch::softplus(critic->forward(generator->forward(noise).detach())).mean())
          .backward();
      judges.step();
      makes.zero_grad();
      torch::softplus(-critic->forward(generator->forward(noise))).mean().backward();
      makes.step();
    }
  }

  torch::nn::Sequential generator;
  torch::nn::Sequential critic;
};

torch::optim::AdamOptions Options() { return torch::optim::AdamOptions(2e-3).betas({0.5, 0.999}); }

double Difference(torch::nn::Sequential& a, torch::nn::Sequential& b) {
  double most = 0;
  const std::vector<torch::Tensor> others = b->parameters();
  for (size_t i = 0; i < others.size(); ++i) {
    most = std::max(most, (a->parameters()[i] - others[i]).abs().max().item<double>());
  }
  return most;
}

TEST(GanTest, TwoWorkersEndAsOneProcess) {
  Gan alone;
  torch::optim::Adam makes(alone.generator->parameters(), Options());
  torch::optim::Adam judges(alone.critic->parameters(), Options());
  alone.Train(makes, judges, 0, 1);

  ServerOptions options;
  options.shard = Sync(2);
  RunningServer server(options);
  std::array<Gan, 2> workers;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      JobFlags flags;
      flags.server = server.address();
      flags.name = std::string(1, static_cast<char>('a' + i));
      const Job job = *Job::Start(flags);
      RemoteOptimizer own_makes(job, *workers[i].generator, Options());
      RemoteOptimizer own_judges(*job.Model("critic"), *workers[i].critic, Options());
      workers[i].Train(own_makes, own_judges, i, 2);
      own_makes.leave();
      own_judges.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server.exit_code(), 0);
  for (Gan& worker : workers) {
    EXPECT_LT(Difference(worker.generator, alone.generator), 1e-6);
    EXPECT_LT(Difference(worker.critic, alone.critic), 1e-6);
  }
}

}  // namespace
}  // namespace sluice
