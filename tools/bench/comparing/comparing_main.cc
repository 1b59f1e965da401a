// comparing_main: one worker of a server, or one rank of an allreduce, that trains for a given time
// at a given pace, and writes what came of it. tools/bench/comparison starts it.
//
// Exit codes: 0 done; 1 failed; 2 bad command line.

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/command_line.h"
#include "tools/bench/comparing/paced_learner.h"
#include "tools/bench/comparing/torch_curve.h"
#include "tools/bench/comparing/torch_mpi_group.h"
#include "worker/data/load_dataset.h"
#include "worker/job.h"
#include "worker/job_flags.h"
#include "worker/program/model_flags.h"
#include "worker/program/optimizer_flags.h"
#include "worker/torch/threads.h"
#include "worker/torch/training/gloo_group.h"
#include "worker/torch/training/learners.h"
#include "worker/training/trainer.h"

namespace sluice::bench {
namespace {

constexpr int kEndlessEpochs = 1000000;

struct Flags {
  std::string by = "server";
  ModelFlags model;
  OptimizerFlags optimizer;
  TrainerOptions trainer;
  LocalSteps local = {0};  // every 0 steps: none
  double seconds = 30;
  double batch_seconds = 0.02;
  double test_every = 1;
  std::string compute = "constant";
  std::string slow;
  int test_threads = 2;
  std::string json;
  JobFlags job;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--by", flags.by,
                 "who adds gradients: a server (--server=HOST:PORT), or allreduce of mpi or gloo")
      ->check(CLI::IsMember({"server", "mpi", "gloo"}))
      ->capture_default_str();
  AddModelFlags(app, flags.model);
  AddOptimizerFlags(app, flags.optimizer);
  AddAveragingFlags(app, flags.local);
  app.add_option("--local-steps", flags.local.every,
                 "steps between two pushes of parameters; 0: push gradients")
      ->capture_default_str();
  app.add_option("--batch-size", flags.trainer.batch_size, "samples in a batch of one worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", flags.trainer.seed,
                 "seed of the first parameters, the order of the data and the times")
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "time of the training, without tests")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch-seconds", flags.batch_seconds, "time that a batch takes to compute")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--compute", flags.compute,
                 "distribution of that time: constant, exponential, lognormal:SIGMA or "
                 "stalls:CHANCE:LONGER")
      ->capture_default_str();
  app.add_option("--slow", flags.slow,
                 "COUNT:FACTOR: so many workers take so many times as long, for example 1:4");
  app.add_option("--test-every", flags.test_every,
                 "seconds of training between two states of the model that are tested at the end")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--test-threads", flags.test_threads, "of LibTorch, when training is over")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--max-steps", flags.trainer.max_steps, "end after so many batches; 0: no limit")
      ->capture_default_str();
  app.add_option("--json", flags.json, "file of the result: one JSON object")->required();
  AddJobFlags(app, flags.job);
}

struct Data {
  Dataset train;
  Dataset test;
};

absl::StatusOr<Data> Load(const DatasetSource& source) {
  auto train = LoadDataset(source, DatasetSplit::kTrain);
  if (!train.ok()) return train.status();
  auto test = LoadDataset(source, DatasetSplit::kTest);
  if (!test.ok()) return test.status();
  return Data{*std::move(train), *std::move(test)};
}

absl::StatusOr<LearnerOptions> LearnerFrom(const Flags& flags, const SampleForm& form) {
  const auto optimizer = OptimizerFrom(flags.optimizer);
  if (!optimizer.ok()) return optimizer.status();
  LearnerOptions options;
  options.choice.model = flags.model.model;
  options.threads = flags.model.threads;
  options.choice.form = form;
  options.optimizer = *optimizer;
  options.seed = flags.trainer.seed;
  if (flags.local.every > 0) options.local = flags.local;
  return options;
}

absl::StatusOr<PaceOptions> PaceFrom(const Flags& flags) {
  const auto times = ParseComputeTimes(flags.compute, flags.slow);
  if (!times.ok()) return times.status();
  return PaceOptions{absl::Seconds(flags.batch_seconds), *times, absl::Seconds(flags.seconds),
                     flags.trainer.seed};
}

absl::Status Write(const std::string& file, const nlohmann::json& result) {
  std::ofstream out(file);
  // A loss that is not finite becomes null.
  out << result.dump() << "\n" << std::flush;
  if (out.good()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("could not write --json=", file));
}

// Trains until the time is over. Every rank tells what it used; the first one also tests the states
// that it has noted.
absl::StatusOr<nlohmann::json> Train(const Flags& flags, const Data& data, const PaceOptions& pace,
                                     LearnerOptions options, const Job* job, GradientGroup* group) {
  TorchCurve curve(absl::Seconds(flags.test_every));
  const PacedLearner* timed = nullptr;
  Step noted;
  options.watch = [&](const torch::nn::Module& model, const LearnReport& report) {
    // Between two averages of local steps the parameters are not yet the job's.
    if (timed->place().index != 0 || report.step == noted) return;
    noted = report.step;
    curve.Note(model, report.step, timed->elapsed());
  };
  auto learner =
      job == nullptr ? MakeLocalLearner(options, group) : MakeRemoteLearner(options, *job);
  if (!learner.ok()) return learner.status();
  PacedLearner paced(*std::move(learner), pace, group);
  timed = &paced;
  const absl::Status trained = sluice::Train(flags.trainer, data.train, paced, nullptr);
  if (!trained.ok() && !absl::IsCancelled(trained)) return trained;
  const PacedUsage usage = paced.usage();
  const absl::Status finished = paced.Finish(false);
  if (!finished.ok()) return finished;
  nlohmann::json result = {{"rank", paced.place().index},
                           {"seconds", absl::ToDoubleSeconds(usage.wall)},
                           {"cpu", absl::ToDoubleSeconds(usage.cpu)},
                           {"exchange", absl::ToDoubleSeconds(usage.exchange)},
                           {"batches", usage.batches}};
  if (paced.place().index == 0) {
    SetThreads(flags.test_threads);
    const auto points = curve.Evaluate(options.choice.model, data.test);
    if (!points.ok()) return points.status();
    for (const TorchCurve::Point& point : *points) {
      result["curve"].push_back({absl::ToDoubleSeconds(point.elapsed), point.step.value(),
                                 point.evaluation.loss, point.evaluation.top1});
    }
  }
  return result;
}

absl::Status Run(const Flags& flags) {
  const auto data = Load(flags.model.data);
  if (!data.ok()) return data.status();
  const auto options = LearnerFrom(flags, data->train.form);
  if (!options.ok()) return options.status();
  const auto pace = PaceFrom(flags);
  if (!pace.ok()) return pace.status();
  absl::StatusOr<nlohmann::json> result = nlohmann::json();
  if (flags.by == "server") {
    const auto job = Job::Start(flags.job);
    if (!job.ok()) return job.status();
    result = Train(flags, *data, *pace, *options, &*job, nullptr);
  } else {
    auto group = flags.by == "gloo" ? JoinGlooGroup() : JoinMpiGroup();
    if (!group.ok()) return group.status();
    result = Train(flags, *data, *pace, *options, nullptr, group->get());
  }
  if (!result.ok()) return result.status();
  const std::string suffix =
      flags.by == "server" ? "" : absl::StrCat(".", (*result)["rank"].get<int>());
  return Write(flags.json + suffix, *result);
}

int Main(int argc, char** argv) {
  CLI::App app("Trains for a given time at a given pace.", "comparing_main");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  Flags flags;
  flags.trainer.epochs = kEndlessEpochs;
  AddFlags(app, flags);
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  const absl::Status status = Run(flags);
  if (status.ok()) return 0;
  std::cerr << absl::StrCat("comparing_main: ", status.message(), "\n");
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
