// sluice_train: trains a classifier or a model with tables, with a parameter server or, with
// --role=single, without.
//
//   mpirun -n 4 sluice_train                          rank 0 serves, three workers train
//   mpirun -n 1 sluice_server : -n 3 sluice_train     the same
//   sluice_train --server=host:port                   a worker of a server that runs elsewhere
//   sluice_train --role=single                        one process, no server: the baseline
//
// Exit codes: 0 done; 1 failed; 2 bad command line; 3 the server could not be reached, or is gone;
// 7 training diverged, and the server's --on-divergence says that the job ends then.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/base/help_text.h"
#include "common/base/nearest.h"
#include "common/launch/failure.h"
#include "common/launch/mpi_bootstrap.h"
#include "common/wire/versions.h"
#include "worker/data/tables/load_table_data.h"
#include "worker/job.h"
#include "worker/job_flags.h"
#include "worker/program/model_flags.h"
#include "worker/program/optimizer_flags.h"
#include "worker/program/training_data.h"
#include "worker/torch/torch_version.h"
#include "worker/torch/training/gloo_group.h"
#include "worker/torch/training/learners.h"
#include "worker/training/progress.h"
#include "worker/training/run_record.h"
#include "worker/training/trainer.h"

namespace sluice {
namespace {

constexpr int64_t kCropPadding = 4;  // as in He et al. 2015 on CIFAR-10

struct TrainFlags {
  std::string role = "job";
  std::string progress = "auto";
  bool quiet = false;
  bool pace = false;
  std::string json;
  bool test = true;
  ModelFlags model;
  LearnerOptions learner;
  OptimizerFlags optimizer;
  uint64_t until_step = 0;
  LocalSteps local = {0};  // every 0 steps: none
  TrainerOptions trainer;
  std::string augment = "none";
  JobFlags job;
};

void AddLocalStepFlags(CLI::App& app, TrainFlags& flags) {
  app.add_option(
         "--local-steps", flags.local.every,
         "steps that a worker takes by itself between two pushes of its parameters, which the "
         "server averages; 0: push gradients")
      ->capture_default_str();
  app.add_option(
         "--elasticity", flags.local.elasticity,
         "with --local-steps: how far a worker moves towards the server's parameters; 1: all "
         "the way")
      ->capture_default_str();
  AddAveragingFlags(app, flags.local);
}

void AddProgressFlags(CLI::App& app, TrainFlags& flags) {
  app.add_option("--progress", flags.progress,
                 "line (renews itself), plain (a line every few seconds), off, or auto: line on a "
                 "terminal, plain elsewhere and under mpirun")
      ->check(CLI::IsMember({"auto", "line", "plain", "off"}))
      ->capture_default_str();
  app.add_flag("--quiet", flags.quiet, "do not say how far training is, whatever --progress says");
  app.add_option("--json", flags.json,
                 "file to which each worker appends a JSON object about each second: loss, step, "
                 "staleness, time with the server; tools/plot draws it");
  app.add_flag(
      "--pace", flags.pace,
      "print at the end the images (or samples) per second, and the share of time outside compute");
}

// An empty text says that the value is known. CLI11 would list "crop,flip" as two values.
std::string CheckAugment(const std::string& found) {
  const std::vector<std::string> known = {"none", "crop", "flip", "crop,flip"};
  if (absl::c_linear_search(known, found)) return "";
  return absl::StrCat("expected none, crop, flip or crop,flip, found ", Shown(found),
                      DidYouMean(found, known));
}

void AddTrainFlags(CLI::App& app, TrainFlags& flags) {
  app.add_option(
         "--role", flags.role,
         "job (server and workers), single (one process, no server) or allreduce (no server: "
         "all ranks of the launch average their gradients by gloo)")
      ->check(CLI::IsMember({"job", "single", "allreduce"}))
      ->capture_default_str();
  AddModelFlags(app, flags.model, ModelKinds::kAll);
  app.add_option("--batch-size", flags.trainer.batch_size, "samples in a batch of one worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--epochs", flags.trainer.epochs, "passes over the data, all workers together")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--max-steps", flags.trainer.max_steps,
                 "end after this many batches, with those of earlier launches; 0: no limit")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--until-step", flags.until_step,
                 "end when the parameters have reached this step; 0: no limit")
      ->capture_default_str();
  app.add_option(
      "--init-from", flags.learner.init_from,
      "the first parameters: a checkpoint of one server or of several, by its file, or by "
      "the servers' --checkpoint-dir, with commas between several, which means its newest; "
      "or a file that torch.save(dict(model.state_dict()), file) or tools/sluicectl "
      "checkpoint export wrote (default: random parameters from --seed)");
  AddOptimizerFlags(app, flags.optimizer);
  AddLocalStepFlags(app, flags);
  app.add_flag("--overlap", flags.learner.overlap,
               "send gradients while backward still computes others");
  app.add_option(
         "--augment", flags.augment,
         "random changes of the training images: none, crop (4 black pixels are added on "
         "each side, then a part of the original size is cropped), flip (half of the images "
         "are mirrored), or crop,flip")
      ->check(CheckAugment)
      ->capture_default_str();
  app.add_option("--data-threads", flags.trainer.data_threads,
                 "threads that prepare batches ahead of the steps")
      ->check(CLI::Range(1, kMostDataThreads))
      ->capture_default_str();
  app.add_option("--seed", flags.trainer.seed,
                 "seed of the first parameters, of the order of the data and of --augment")
      ->capture_default_str();
  AddProgressFlags(app, flags);
  app.add_flag("--test,!--no-test", flags.test, "measure the model on the test data at the end")
      ->capture_default_str();
  AddJobFlags(app, flags.job);
}

// mpirun gives its ranks a terminal of its own, wherever its output goes.
bool RenewsLine(const std::string& progress) {
  if (progress == "auto") return isatty(STDOUT_FILENO) != 0 && !LaunchedByMpi();
  return progress == "line";
}

std::string UnitOf(const ModelFlags& flags) {
  return IsTableModel(flags.model) ? "samples" : "images";
}

void TellPace(const absl::optional<Pace>& pace, const std::string& unit) {
  if (!pace.has_value()) return;
  std::cout << absl::StrFormat("pace %.1f %s/s  %.1f %% outside compute\n",
                               pace->samples_per_second, unit, 100 * pace->exchange_share)
            << std::flush;
}

// What is told at the end: of a classifier, whose accuracy says enough, nothing else.
TestResult TakeAccuracy(TestResult result) {
  if (result.metrics.empty() || result.metrics.front().name != "accuracy") return result;
  return {result.samples, std::nan(""), {result.metrics.front()}};
}

void Tell(const TestResult& result, std::ostream& out) {
  if (!std::isnan(result.loss)) out << absl::StrFormat("test loss %.6f\n", result.loss);
  for (const Metric& metric : result.metrics) {
    out << absl::StrFormat("test %s %.4f\n", metric.name, metric.value);
  }
  out << std::flush;
}

// Trains, and lets one worker measure what came of it. `record` may be null.
absl::Status TrainAndEvaluate(const TrainFlags& flags, const TrainingData& data, bool speaks,
                              RunRecord* record, Learner& learner) {
  std::ostream silent(nullptr);
  const bool shows = speaks && !flags.quiet && flags.progress != "off";
  Progress progress(shows ? std::cout : silent, RenewsLine(flags.progress), RealClock(),
                    UnitOf(flags.model));
  if (record != nullptr) record->Begin(learner.place());
  bool any = false;
  const auto note = [&](const TrainedBatch& batch) {
    any = true;
    progress.Note(batch);
    if (record != nullptr) record->Note(batch.epoch, batch.report, batch.samples);
  };
  const absl::Status trained = Train(flags.trainer, data.samples, learner, note);
  progress.Finish();
  if (record != nullptr) record->Finish();
  if (!trained.ok()) {
    learner.Fail(trained);
    return trained;
  }
  if (speaks && !any && !learner.place().earlier_launches.empty()) {
    std::cerr << CalledAs("sluice_train")
              << ": earlier launches of this job have trained on all batches; give it more "
                 "--epochs, or a larger --max-steps if that is given\n";
  }
  if (speaks && flags.pace) TellPace(progress.pace(), UnitOf(flags.model));
  const bool evaluates = flags.test && learner.place().index == 0;
  const absl::Status finished = learner.Finish(evaluates);
  if (!finished.ok() || !evaluates) return finished;
  const auto result = learner.Evaluate();
  if (!result.ok()) return result.status();
  if (record != nullptr) record->AddTest(*result);
  const TestResult told = TakeAccuracy(*result);
  Tell(told, std::cout);
  return learner.Report(ResultsOf(told));
}

// Trains with the job's server or, without a job, alone or in a group.
absl::Status RunWorker(const TrainFlags& flags, const Job* job, GradientGroup* group = nullptr) {
  const auto data = LoadTrainingData(flags.model, flags.trainer);
  if (!data.ok()) return data.status();
  absl::StatusOr<std::unique_ptr<RunRecord>> record = nullptr;
  if (!flags.json.empty()) record = RunRecord::Open(flags.json, RealClock());
  if (!record.ok()) return record.status();
  LearnerOptions options = flags.learner;
  options.choice = data->choice;
  options.batch_size = flags.trainer.batch_size;
  auto learner =
      job == nullptr ? MakeLocalLearner(options, group) : MakeRemoteLearner(options, *job);
  if (!learner.ok()) return learner.status();
  const bool speaks = job == nullptr ? (*learner)->place().index == 0 : job->speaks();
  const absl::Status trained = TrainAndEvaluate(flags, *data, speaks, record->get(), **learner);
  if (*record != nullptr && !(*record)->status().ok()) {
    std::cerr << absl::StrCat(CalledAs("sluice_train"), ": ", (*record)->status().message(), "\n");
  }
  return trained;
}

// The pushes of all workers in all epochs, for a schedule that needs them; 0 if this process has no
// data, which a server needs for nothing else.
uint64_t PushesOf(const TrainFlags& flags) {
  if (!NeedsPushes(flags.job)) return 0;
  const uint64_t batches =
      CountTrainingSamples(flags.model) * flags.trainer.epochs / flags.trainer.batch_size;
  return batches / std::max(flags.local.every, uint32_t{1});
}

void SetEndOfTraining(TrainFlags& flags) {
  const auto most = static_cast<uint64_t>(flags.trainer.max_steps);
  SetPushes(PushesOf(flags), flags.job);
  SetSoonerEnd(most / std::max(flags.local.every, uint32_t{1}), flags.until_step, flags.job);
}

// With --role=single or allreduce.
absl::Status TrainWithoutServer(TrainFlags& flags) {
  if (WantsTrace(flags.job)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--trace shows what happens between workers and a server; --role=", flags.role,
                     " has none"));
  }
  absl::StatusOr<std::unique_ptr<GradientGroup>> group = nullptr;
  if (flags.role == "allreduce") {
    group = JoinGlooGroup();
    if (!group.ok()) return group.status();
    SetPushes(PushesOf(flags) / (*group)->world().size,
              flags.job);  // each step takes a batch of all
  }
  const auto schedule = ScheduleFrom(flags.job);
  if (!schedule.ok()) return schedule.status();
  flags.learner.schedule = *schedule;
  return RunWorker(flags, nullptr, group->get());
}

int Fail(const absl::Status& status) { return ReportFailure("sluice_train", status); }

int Main(int argc, char** argv) {
  CLI::App app("Trains a classifier or a model with tables with a parameter server.",
               "sluice_train");
  // Given twice, the last counts: scripts may set defaults before a user's flags.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  TrainFlags flags;
  AddTrainFlags(app, flags);
  std::vector<BuiltWith> versions = WireVersions();
  versions.push_back(TorchVersion());
  AddVersionFlag(app, versions);
  ShowFirst(app,
            {"--model", "--dataset", "--batch-size", "--epochs", "--optimizer", "--learning-rate",
             "--mode", "--servers", "--push-encoding", "--checkpoint-dir", "--page", "--server"},
            {"mpirun -n 4 sluice_train --model=lenet    # rank 0 serves, three workers train",
             "sluice_train --server=node1:7077          # a worker of a server that runs there",
             "sluice_train --role=single                # one process without a server"});
  const absl::optional<int> exit_code = ExitCodeOfLaunchedUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  if (flags.role == "job") {
    const absl::Status placed = CheckFlagsOfServer(app, flags.job, {argv + 1, argv + argc});
    if (!placed.ok()) return Fail(ShareFailure(placed));
  }
  const absl::Status suits = CheckTableModel(app, flags.model);
  if (!suits.ok()) return Fail(ShareFailure(suits));
  const auto optimizer = OptimizerFrom(flags.optimizer);
  if (!optimizer.ok()) return Fail(ShareFailure(optimizer.status()));
  flags.learner.threads = flags.model.threads;
  flags.learner.optimizer = *optimizer;
  flags.learner.seed = flags.trainer.seed;
  if (flags.local.every > 0) flags.learner.local = flags.local;
  flags.trainer.until_step = Step(flags.until_step);
  flags.trainer.augmentation.padding = absl::StrContains(flags.augment, "crop") ? kCropPadding : 0;
  flags.trainer.augmentation.mirror = absl::StrContains(flags.augment, "flip");
  SetEndOfTraining(flags);
  absl::Status status;
  if (flags.role != "job") {
    status = TrainWithoutServer(flags);
  } else {
    auto job = Job::Start(flags.job);
    if (!job.ok()) return Fail(job.status());
    if (job->is_server()) return job->Serve();
    status = RunWorker(flags, &*job);
  }
  return status.ok() ? 0 : Fail(status);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
