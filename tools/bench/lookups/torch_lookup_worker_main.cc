// lookup_worker: a worker whose model is nothing but a bag of embeddings, for measurements.
//
//   lookup_worker --server=unix:/tmp/s --rows=1000000 --width=64 --ids=4096 --batches=100
//   lookup_worker --server=unix:/tmp/s … --reads      pulls rows, and pushes nothing
//
// tools/bench/tables starts it. It prints "ready", waits for a line, then measures and prints a
// JSON object.

#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/launch/failure.h"
#include "tools/bench/lookups/zipf_ids.h"
#include "worker/job.h"
#include "worker/job_flags.h"
#include "worker/torch/remote_optimizer.h"
#include "worker/torch/run_worker.h"
#include "worker/torch/tables/remote_embedding.h"

namespace {

constexpr size_t kWarmUp = 5;       // batches that do not count
constexpr int64_t kFill = 100'000;  // rows of a push while the table is filled

struct Options {
  int64_t rows = 1'000'000;
  uint32_t width = 64;
  int64_t ids = 4096;
  int64_t bag = 1;
  int batches = 100;
  double exponent = 1.1;
  bool fill = false;
  bool reads = false;
};

struct Bags : torch::nn::Module {
  explicit Bags(uint32_t width) {
    sluice::RemoteEmbeddingOptions table;
    table.width = width;
    rows = register_module(
        "rows", sluice::RemoteEmbeddingBag(table, sluice::RemoteEmbeddingBagImpl::Mode::kSum));
    bias = register_parameter("bias", torch::zeros({1}));
  }
  torch::Tensor Loss(const torch::Tensor& ids, const torch::Tensor& offsets) {
    return rows->forward(ids, offsets).mean() + bias.sum();
  }
  sluice::RemoteEmbeddingBag rows = nullptr;
  torch::Tensor bias;
};

class Worker {
 public:
  Worker(const sluice::Job& job, const Options& options)
      : options_(options),
        model_(options.width),
        optimizer_(job, model_, torch::optim::AdagradOptions(0.01)) {
    sluice::bench::ZipfIds zipf(static_cast<uint64_t>(options.rows), options.exponent,
                                optimizer_.index() + 1);
    for (int i = 0; i < options.batches + static_cast<int>(kWarmUp); ++i) Draw(zipf);
  }

  void Run() {
    if (options_.fill) Fill();
    for (size_t i = 0; i < kWarmUp; ++i) Batch();
    std::cout << "ready" << std::endl;
    std::string begin;
    std::getline(std::cin, begin);
    std::vector<double> milliseconds;
    const absl::Time begun = sluice::RealClock().Now();
    for (int i = 0; i < options_.batches; ++i) {
      const absl::Time start = sluice::RealClock().Now();
      Batch();
      milliseconds.push_back(absl::ToDoubleMilliseconds(sluice::RealClock().Now() - start));
    }
    Print(absl::ToDoubleSeconds(sluice::RealClock().Now() - begun), std::move(milliseconds));
    optimizer_.leave();
  }

 private:
  // Every row exists, as in a table that is trained for long.
  void Fill() {
    for (int64_t begin = 0; begin < options_.rows; begin += kFill) {
      const int64_t end = std::min(begin + kFill, options_.rows);
      Learn(torch::arange(begin, end, torch::kInt64));
    }
  }

  // A batch, before time counts.
  void Draw(sluice::bench::ZipfIds& zipf) {
    const std::vector<uint64_t> drawn = zipf.Draw(static_cast<size_t>(options_.ids));
    torch::Tensor ids = torch::empty({options_.ids}, torch::kInt64);
    std::copy(drawn.begin(), drawn.end(), ids.data_ptr<int64_t>());
    if (batches_.size() >= kWarmUp) rows_ += sluice::bench::Different(drawn).size();
    batches_.push_back(ids);
  }

  void Batch() {
    const torch::Tensor& ids = batches_[next_++];
    options_.reads ? Read(ids) : Learn(ids);
  }

  void Learn(const torch::Tensor& ids) {
    optimizer_.zero_grad();
    const torch::Tensor loss = model_.Loss(ids, Offsets(ids));
    loss.backward();
    optimizer_.step(static_cast<uint32_t>(ids.size(0)), loss.item<float>());
  }

  void Read(const torch::Tensor& ids) {
    const torch::NoGradGuard no_gradients;
    model_.Loss(ids, Offsets(ids));
  }

  torch::Tensor Offsets(const torch::Tensor& ids) const {
    return torch::arange(0, ids.size(0), options_.bag, torch::kInt64);
  }

  void Print(double seconds, std::vector<double> milliseconds) const {
    std::sort(milliseconds.begin(), milliseconds.end());
    const auto at = [&](double share) {
      return milliseconds[static_cast<size_t>(share * (milliseconds.size() - 1))];
    };
    std::cout
        << absl::StrFormat(
               R"({"seconds": %.6f, "ids": %d, "rows": %d, "median_ms": %.3f, "p99_ms": %.3f})",
               seconds, options_.ids * options_.batches, rows_, at(0.5), at(0.99))
        << std::endl;
  }

  const Options options_;
  Bags model_;
  sluice::RemoteOptimizer optimizer_;
  std::vector<torch::Tensor> batches_;
  size_t next_ = 0;
  uint64_t rows_ = 0;  // different ones in each batch that counts
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a bag of embeddings that is on a server.", "lookup_worker");
  Options options;
  sluice::JobFlags flags;
  app.add_option("--rows", options.rows, "of the table")->check(CLI::PositiveNumber);
  app.add_option("--width", options.width, "numbers of a row")->check(CLI::PositiveNumber);
  app.add_option("--ids", options.ids, "of a batch")->check(CLI::PositiveNumber);
  app.add_option("--bag", options.bag, "ids of a bag")->check(CLI::PositiveNumber);
  app.add_option("--batches", options.batches, "measured ones")->check(CLI::PositiveNumber);
  app.add_option("--exponent", options.exponent, "of Zipf's law");
  app.add_flag("--fill", options.fill, "first touch every row");
  app.add_flag("--reads", options.reads, "pull only");
  sluice::AddJobFlags(app, flags);
  if (const auto code = sluice::ExitCodeOfLaunchedUsage(app, argc, argv)) return *code;
  torch::set_num_threads(1);
  auto job = sluice::Job::Start(flags);
  if (!job.ok()) return sluice::ReportFailure("lookup_worker", job.status());
  if (job->is_server()) return job->Serve();
  return sluice::RunWorker("lookup_worker", [&] { Worker(*job, options).Run(); });
}
