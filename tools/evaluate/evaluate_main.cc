// sluice_evaluate: measures loss, top-1 and top-5 of a classifier on a test set, or loss and metric
// of a model with tables, while it is trained or after.
//
//   sluice_evaluate --server=host:port            evaluates the steps of a running server
//   sluice_evaluate --checkpoint-dir=DIR[,DIR…]   evaluates the checkpoints that servers save
//   sluice_evaluate --checkpoint=FILE             evaluates a .safetensors or torch.save() file
//
// It ends when training does. kExitCodes lists the exit codes.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/base/logging.h"
#include "common/base/progress_line.h"
#include "common/wire/versions.h"
#include "tools/evaluate/directory_source.h"
#include "tools/evaluate/evaluation_report.h"
#include "tools/evaluate/parameter_source.h"
#include "tools/evaluate/server_source.h"
#include "worker/data/load_dataset.h"
#include "worker/data/tables/load_table_data.h"
#include "worker/job.h"
#include "worker/job_flags.h"
#include "worker/program/model_flags.h"
#include "worker/torch/torch_version.h"
#include "worker/torch/training/evaluator.h"

namespace sluice {
namespace {

constexpr char kExitCodes[] =
    "The program ends when training does. Exit codes: 0 done; 1 it failed, or there was nothing to "
    "evaluate; 2 bad command line; 3 no server answered, or none held the directory, for "
    "--connect-timeout.";

struct EvaluateFlags {
  ModelFlags model;
  std::string name;  // the model's, in a job that has several
  std::string file;
  DirectoryOptions directory;
  double interval = absl::ToDoubleSeconds(DirectoryOptions().interval);
  std::string json;
  bool quiet = false;
  JobFlags job;

  absl::Duration patience() const { return absl::Seconds(job.connect_timeout); }
};

void AddEvaluateFlags(CLI::App& app, EvaluateFlags& flags) {
  app.add_option("--checkpoint", flags.file,
                 "file to evaluate: a checkpoint, another .safetensors file, or one that "
                 "torch.save(dict(model.state_dict()), file) wrote");
  CLI::Option* const directory =
      app.add_option("--checkpoint-dir", flags.directory.directory,
                     "directory of a server to follow; of several servers that of the first one, "
                     "and after it with commas those of the others, if each has its own; damaged "
                     "checkpoints are logged and skipped");
  app.add_flag("--once", flags.directory.once, "evaluate the checkpoints that are there, then end")
      ->needs(directory);
  app.add_option("--poll-interval", flags.interval, "seconds between two reads of the directory")
      ->needs(directory)
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  app.add_option("--every", flags.directory.every,
                 "least number of steps between two evaluations; the last step is always "
                 "evaluated. A server is asked for its newest step each time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--model-name", flags.name,
                 "name of the model to evaluate, in a job that has several; its checkpoints lie in "
                 "the directory models/NAME of --checkpoint-dir (default: the one without a name)")
      ->excludes(directory);
  app.add_option("--json", flags.json, "file to which each evaluation appends a JSON object");
  app.add_flag("--quiet", flags.quiet, "do not say on stderr how far a long evaluation is");
  AddModelFlags(app, flags.model, ModelKinds::kAll);
  AddConnectionFlags(app, flags.job);
}

// Exactly one flag must say what to evaluate.
absl::Status CheckOneSource(const EvaluateFlags& flags) {
  const int named = int{!flags.job.server.empty()} + int{!flags.directory.directory.empty()} +
                    int{!flags.file.empty()};
  if (named == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "found ", named, " of --server, --checkpoint-dir and --checkpoint, expected exactly one"));
}

// Fills in `job` if the source is a server, since that source needs it.
absl::StatusOr<std::unique_ptr<ParameterSource>> MakeSource(const EvaluateFlags& flags,
                                                            const Evaluator& model,
                                                            absl::optional<Job>* job) {
  if (!flags.file.empty()) return MakeFileSource(flags.file);
  if (!flags.directory.directory.empty()) {
    DirectoryOptions options = flags.directory;
    options.patience = flags.patience();
    options.interval = absl::Seconds(flags.interval);
    return MakeDirectorySource(options);
  }
  auto started = Job::Start(flags.job);
  if (!started.ok()) return started.status();
  auto of_model = flags.name.empty() ? std::move(started) : started->Model(flags.name);
  if (!of_model.ok()) return of_model.status();
  job->emplace(*std::move(of_model));
  return MakeServerSource(**job, flags.directory.every, flags.patience(), model);
}

// What a model is tested on.
struct TestData {
  ModelChoice choice;
  int64_t samples = 0;
};

absl::StatusOr<TestData> LoadTest(const ModelFlags& flags) {
  if (IsTableModel(flags.model)) {
    const auto data = LoadTableData(flags.model, flags.data.folder);
    if (!data.ok()) return data.status();
    return TestData{{flags.model, SampleForm(), nullptr, *data}, (*data)->test().size()};
  }
  auto data = LoadDataset(flags.data, DatasetSplit::kTest);
  if (!data.ok()) return data.status();
  const auto test = std::make_shared<const Dataset>(*std::move(data));
  return TestData{{flags.model, test->form, test, nullptr}, test->size()};
}

absl::StatusOr<TestResult> Measure(Evaluator& model, int64_t samples,
                                   const ProgressOutput& progress) {
  ProgressLine line("evaluating", samples, progress, RealClock());
  return model.Measure([&](int64_t done) { line.Reach(done); });
}

absl::Status EvaluateAll(ParameterSource& source, int64_t samples, Evaluator& model,
                         const ProgressOutput& progress, EvaluationReport& report) {
  for (;;) {
    const auto next = source.Next(model);
    if (!next.ok()) return next.status();
    if (!next->has_value()) return report.Finish();
    const absl::Time began = RealClock().Now();
    const auto result = Measure(model, samples, progress);
    if (!result.ok()) return result.status();
    source.Report(*result);
    const absl::Status added = report.Add(**next, *result, RealClock().Now() - began);
    if (!added.ok()) return added;
  }
}

absl::Status Run(const EvaluateFlags& flags) {
  const absl::Status one = CheckOneSource(flags);
  if (!one.ok()) return one;
  const auto data = LoadTest(flags.model);
  if (!data.ok()) return data.status();
  auto report = EvaluationReport::Open(std::cout, flags.json);
  if (!report.ok()) return report.status();
  auto model = Evaluator::Make(data->choice, flags.model.threads);
  if (!model.ok()) return model.status();
  absl::optional<Job> job;
  const auto source = MakeSource(flags, *model, &job);
  if (!source.ok()) return source.status();
  const ProgressOutput progress = flags.quiet ? ProgressOutput() : ProgressOutput::OnStderr();
  return EvaluateAll(**source, data->samples, *model, progress, **report);
}

// Why the program ends, and what to do.
std::string SentenceFor(const absl::Status& status) {
  const std::string sentence = NameVariables(std::string(status.message()));
  if (ReasonOf(status) != Reason::kBadToken) return sentence;
  return absl::StrCat(sentence,
                      ": --token-file=FILE here, with the file that the server was started with; a "
                      "job of mpirun has a random token, which no file has, unless it was started "
                      "with --token-file=FILE, too");
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return 0;
  if (absl::IsInvalidArgument(status)) return 2;
  return absl::IsDeadlineExceeded(status) ? 3 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app("Evaluates a model while it is trained or after.", "sluice_evaluate");
  app.footer(kExitCodes);
  // A flag that is given twice counts as the last one says: scripts may set defaults before a
  // user's flags.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  EvaluateFlags flags;
  AddEvaluateFlags(app, flags);
  std::vector<BuiltWith> versions = WireVersions();
  versions.push_back(TorchVersion());
  AddVersionFlag(app, versions);
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  InitLogging();
  absl::Status status = CheckTableModel(app, flags.model);
  if (status.ok()) status = Run(flags);
  if (!status.ok()) {
    std::cerr << absl::StrCat(app.get_name(), ": ", SentenceFor(status), "\n");
  }
  return ExitCodeOf(status);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
