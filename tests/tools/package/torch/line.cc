// Workers with LibTorch that fit a line through points of y = 2x + 1.
#include <sluice/torch.h>

#include <cstdio>
#include <memory>

namespace {

void Fit(const sluice::Job& job) {
  torch::nn::Linear line(1, 1);
  sluice::RemoteOptimizer optimizer(job, *line, torch::optim::SGDOptions(0.1).momentum(0.5));
  torch::manual_seed(optimizer.index());
  for (int step = 0; step < 200; ++step) {
    const torch::Tensor x = torch::rand({16, 1}) * 2 - 1;
    optimizer.zero_grad();
    const torch::Tensor loss = torch::mse_loss(line->forward(x), x * 2 + 1);
    loss.backward();
    optimizer.step(16, loss.item<float>());
  }
  optimizer.leave();
  if (!job.speaks()) return;
  std::printf("y = %.3f x + %.3f\n", line->weight.item<float>(), line->bias.item<float>());
}

}  // namespace

int main(int argc, char** argv) {
  auto job = sluice::Job::Start(&argc, &argv);
  if (job.is_server()) return job.Serve();
  return sluice::RunWorker(argv[0], [&] { Fit(job); });
}
