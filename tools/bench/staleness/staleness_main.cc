// staleness_main: trains one model with a server and many workers in virtual time, and prints what
// came of it in one line. tools/bench/learning starts it.
//
// Exit codes: 0 done, also if training diverged; 1 failed; 2 bad command line.

#include <zlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/logging.h"
#include "common/base/malloc_tuning.h"
#include "server/program/training_flags.h"
#include "tools/bench/staleness/torch_workload.h"
#include "tools/bench/staleness/virtual_training.h"
#include "worker/program/optimizer_flags.h"

namespace sluice::bench {
namespace {

constexpr char kPurpose[] =
    "Trains with the server's own code and --workers workers (default 1: one process) in one "
    "thread "
    "and in virtual time. A worker's time for a batch is drawn, and whoever is done first comes "
    "first, so that staleness comes out of the draw. The same flags give the same bits.";

struct Flags {
  TrainingFlags training;
  OptimizerFlags optimizer;
  TorchWorkloadOptions workload;
  int64_t epochs = 8;
  int64_t batches = 0;
  LocalSteps local = {0};  // every 0 steps: none
  std::string compute = "exponential";
  std::string slow;
  bool every_epoch = false;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--model", flags.workload.model,
                 "lenet, mlp or resnet18, on Fashion-MNIST; or transformer, which sorts tokens")
      ->check(CLI::IsMember({"lenet", "mlp", "resnet18", "transformer"}))
      ->capture_default_str();
  app.add_option("--data-dir", flags.workload.data_dir,
                 "folder of the images (default: where Debian puts them)");
  app.add_option("--test-images", flags.workload.test_images,
                 "measure the accuracy on so many of the test images; 0: on all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--batch-size", flags.workload.batch_size, "samples in a batch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--epochs", flags.epochs, "passes over the data, all workers together")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batches", flags.batches,
                 "end after so many batches, all workers together; 0: after --epochs")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", flags.workload.seed,
                 "seed of the first parameters, the order of the data and the times")
      ->capture_default_str();
  app.add_option("--local-steps", flags.local.every,
                 "steps that a worker takes by itself between two pushes of its parameters, which "
                 "the server averages; 0: push gradients")
      ->capture_default_str();
  AddAveragingFlags(app, flags.local);
  app.add_option("--compute", flags.compute,
                 "distribution of the time that a batch takes: constant, exponential, "
                 "lognormal:SIGMA or stalls:CHANCE:LONGER")
      ->capture_default_str();
  app.add_option("--slow", flags.slow,
                 "COUNT:FACTOR: so many workers take so many times as long, for example 2:5");
  app.add_flag("--every-epoch", flags.every_epoch,
               "also print a line after each pass over the data");
  AddOptimizerFlags(app, flags.optimizer);
  AddTrainingFlags(app, flags.training);
}

absl::Status ApplyFlags(const TrainingFlags& flags, ShardOptions* options) {
  if (flags.max_step_wait.has_value()) {
    return absl::InvalidArgumentError(
        "--max-step-wait is given, but virtual workers never keep a step waiting in real time; "
        "leave it out");
  }
  return ApplyTrainingFlags(flags, 1, options);
}

absl::StatusOr<VirtualTrainingOptions> OptionsFrom(const Flags& flags,
                                                   const OptimizerOptions& optimizer) {
  VirtualTrainingOptions options;
  const auto times = ParseComputeTimes(flags.compute, flags.slow);
  if (!times.ok()) return times.status();
  options.times = *times;
  options.seed = flags.workload.seed;
  options.batches = flags.batches;
  options.optimizer.options = optimizer;
  if (flags.local.every > 0) {
    options.local_steps = flags.local.every;
    options.optimizer.options = AveragingOf(flags.local);
  }
  const absl::Status applied = ApplyFlags(flags.training, &options.shard);
  if (!applied.ok()) return applied;
  options.shard.lease = absl::InfiniteDuration();  // nobody sends heartbeats, and nobody dies
  return options;
}

void PrintEpoch(const EpochReport& report, double accuracy) {
  std::cout << absl::StreamFormat("epoch=%d loss=%.4f accuracy=%.4f\n", report.epoch, report.loss,
                                  accuracy)
            << std::flush;
}

std::string CrcOf(const std::vector<float>& parameters) {
  return absl::StrFormat("%08x", crc32_z(0, reinterpret_cast<const Bytef*>(parameters.data()),
                                         parameters.size() * sizeof(float)));
}

// The line that tells of the run: fields NAME=VALUE, which contain no spaces, and, if training
// ended early, the reason.
std::string LineOf(const Flags& flags, const TrainingReport& report, double accuracy,
                   absl::Duration wall) {
  const ShardStatus& server = report.server;
  std::string rules = flags.training.staleness_rules;
  if (flags.training.discount_stale) rules += ",discount";
  std::string line = absl::StrFormat(
      "model=%s mode=%s workers=%d local_steps=%d rules=%s seed=%d steps=%d staleness=%.2f "
      "largest=%d dropped=%d loss=%.4f accuracy=%.4f crc=%s virtual=%.1f wall=%.1f",
      flags.workload.model, ConsistencyModeName(server.consistency.mode), server.expected_workers,
      flags.local.every, rules, flags.workload.seed, server.step.value(), server.staleness.mean(),
      server.staleness.max(), server.counters.stale, report.loss, accuracy,
      CrcOf(report.parameters), report.time, absl::ToDoubleSeconds(wall));
  if (!report.ended.ok()) absl::StrAppend(&line, " ended: ", report.ended.message());
  return line + "\n";
}

absl::Status Run(Flags flags) {
  const auto optimizer = OptimizerFrom(flags.optimizer);
  if (!optimizer.ok()) return optimizer.status();
  if (flags.local.every > 0) flags.workload.local = OptimizerConfig{*optimizer};
  const auto workload = MakeTorchWorkload(flags.workload);
  if (!workload.ok()) return workload.status();
  if (flags.batches == 0) flags.batches = flags.epochs * (*workload)->batches_per_epoch();
  flags.training.pushes = flags.batches / std::max(flags.local.every, uint32_t{1});
  const auto options = OptionsFrom(flags, *optimizer);
  if (!options.ok()) return options.status();
  const absl::Time began = RealClock().Now();
  EpochListener on_epoch;
  if (flags.every_epoch) {
    on_epoch = [&](const EpochReport& epoch, absl::Span<const float> parameters) {
      PrintEpoch(epoch, (*workload)->Accuracy(parameters));
    };
  }
  const auto report = TrainInVirtualTime(*options, **workload, on_epoch);
  if (!report.ok()) return report.status();
  const double accuracy = (*workload)->Accuracy(report->parameters);
  std::cout << LineOf(flags, *report, accuracy, RealClock().Now() - began) << std::flush;
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app(kPurpose, "staleness_main");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  Flags flags;
  AddFlags(app, flags);
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  InitLogging();
  KeepFreedMemory();
  const absl::Status status = Run(flags);
  if (status.ok()) return 0;
  std::cerr << absl::StrCat("staleness_main: ", status.message(), "\n");
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
