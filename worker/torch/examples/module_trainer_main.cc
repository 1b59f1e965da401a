// A trainer that holds no parameters: the network is on one model server, or on two
// (module_server).
//
//   module_trainer --server=127.0.0.1:7072 --name=trainer-0
//   module_trainer --server=127.0.0.1:7072 --then=127.0.0.1:7073 --name=trainer-0

#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <future>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/launch/failure.h"
#include "worker/data/batch.h"
#include "worker/data/load_dataset.h"
#include "worker/data/sampler.h"
#include "worker/job.h"
#include "worker/job_flags.h"
#include "worker/torch/remote_module/remote_module.h"
#include "worker/torch/run_worker.h"
#include "worker/torch/training/batch_tensors.h"

namespace {

struct Options {
  std::string then;  // address of the second model server; empty: there is one
  int batch_size = 32;
  int epochs = 1;
  int64_t batches = 0;
  bool test = true;
};

// The network, whose parts run one after the other.
class Network {
 public:
  Network(const sluice::Job& job, const std::string& then) {
    parts_.push_back(std::make_unique<sluice::RemoteModule>(job));
    if (!then.empty()) parts_.push_back(std::make_unique<sluice::RemoteModule>(job, then));
    for (const auto& part : parts_) pointers_.push_back(part.get());
  }

  torch::Tensor Forward(torch::Tensor x) {
    for (const auto& part : parts_) x = part->forward(x);
    return x;
  }

  void Step(uint32_t samples, float loss) { sluice::StepAll(pointers_, samples, loss); }

  // Ends all parts at once, since a trainer that waits in one part keeps others waiting in the
  // next.
  void Finish(bool stay) {
    std::vector<std::future<void>> ends;
    for (const auto& part : parts_) {
      part->eval();
      ends.push_back(std::async(std::launch::async, [&part, stay] {
        stay ? part->await_end_of_training() : part->leave();
      }));
    }
    for (auto& end : ends) end.get();
  }

  const sluice::RemoteModule& first() const { return *parts_[0]; }

 private:
  std::vector<std::unique_ptr<sluice::RemoteModule>> parts_;
  std::vector<sluice::RemoteModule*> pointers_;
};

sluice::BatchTensors TensorsAt(const sluice::Dataset& data, const std::vector<int64_t>& rows) {
  return sluice::TensorsOf(sluice::MakeBatch(data, rows));
}

// Returns the images per second.
double Train(const sluice::Dataset& data, const Options& options, Network& network) {
  sluice::SamplerOptions sampling;
  sampling.dataset_size = data.size();
  sampling.batch_size = options.batch_size;
  sampling.worker_index = static_cast<int>(network.first().index());
  sampling.workers = static_cast<int>(std::max(network.first().workers(), uint32_t{1}));
  sluice::Sampler sampler(sampling);
  const absl::Time begun = sluice::RealClock().Now();
  int64_t batches = 0;
  auto skipped = static_cast<int64_t>(network.first().pushes_before());  // by a former process
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
      if (skipped-- > 0) continue;
      if (options.batches > 0 && batches == options.batches) break;
      const sluice::BatchTensors batch = TensorsAt(data, sampler.Batch(epoch, step));
      const torch::Tensor loss =
          torch::nn::functional::cross_entropy(network.Forward(batch.inputs), batch.labels);
      loss.backward();
      network.Step(static_cast<uint32_t>(options.batch_size), loss.item<float>());
      ++batches;
    }
  }
  const double seconds = absl::ToDoubleSeconds(sluice::RealClock().Now() - begun);
  return static_cast<double>(batches * options.batch_size) / seconds;
}

double Accuracy(const sluice::Dataset& data, Network& network) {
  constexpr int64_t kAtOnce = 500;
  const torch::NoGradGuard no_grad;
  int64_t right = 0;
  for (int64_t first = 0; first < data.size(); first += kAtOnce) {
    std::vector<int64_t> rows(static_cast<size_t>(std::min(kAtOnce, data.size() - first)));
    std::iota(rows.begin(), rows.end(), first);
    const sluice::BatchTensors batch = TensorsAt(data, rows);
    right += network.Forward(batch.inputs).argmax(1).eq(batch.labels).sum().item<int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(data.size());
}

void Run(const sluice::Job& job, const Options& options) {
  const sluice::Dataset train = sluice::LoadDataset({}, sluice::DatasetSplit::kTrain).value();
  Network network(job, options.then);
  const double pace = Train(train, options, network);
  std::cout << absl::StrFormat("%s: %.0f images/s\n", job.name(), pace) << std::flush;
  const bool tests = options.test && network.first().index() == 0;
  network.Finish(tests);
  if (!tests) return;
  const sluice::Dataset test = sluice::LoadDataset({}, sluice::DatasetSplit::kTest).value();
  std::cout << absl::StrFormat("test accuracy %.4f\n", Accuracy(test, network)) << std::flush;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a network that is on model servers, on Fashion-MNIST.", "module_trainer");
  Options options;
  sluice::JobFlags flags;
  app.add_option("--then", options.then, "address of the model server of the second half");
  app.add_option("--batch-size", options.batch_size, "images in a batch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "passes over the images, all trainers together")
      ->capture_default_str();
  app.add_option("--batches", options.batches, "end after so many batches; 0: after --epochs");
  app.add_flag("!--no-test", options.test, "do not measure the test accuracy");
  sluice::AddJobFlags(app, flags);
  if (const auto code = sluice::ExitCodeOfLaunchedUsage(app, argc, argv)) return *code;
  const absl::Status placed = sluice::CheckFlagsOfServer(app, flags, {argv + 1, argv + argc});
  if (!placed.ok()) return sluice::ReportFailure("module_trainer", sluice::ShareFailure(placed));
  auto job = sluice::Job::Start(flags);
  if (!job.ok()) return sluice::ReportFailure("module_trainer", job.status());
  if (job->is_server()) return job->Serve();
  return sluice::RunWorker("module_trainer", [&] { Run(*job, options); });
}
