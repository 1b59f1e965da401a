#include "worker/job.h"

#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/base/command_line.h"
#include "common/base/logging.h"
#include "common/base/malloc_tuning.h"
#include "common/base/mutex_tuning.h"
#include "common/launch/failure.h"
#include "common/launch/mpi_bootstrap.h"
#include "common/launch/outlive_server.h"
#include "server/program/launch.h"
#include "server/program/server_flags.h"
#include "server/program/server_ranks.h"
#include "worker/connection/grpc/model_names.h"
#include "worker/job_flags.h"
#include "worker/worker_context.h"

namespace sluice {
namespace {

constexpr int kBadUsage = 2;

// Sluice's flags in the command line of a program that may have others.
struct CommandLine {
  explicit CommandLine(const JobOptions& options)
      : takes(options.takes_all_flags ? TakenFlags::kAll : TakenFlags::kPrefixed) {
    app.set_help_flag();  // the program may have a --help of its own
    if (takes == TakenFlags::kPrefixed) {
      app.set_help_flag("--help", "print Sluice's flags and exit");  // --sluice-help
    }
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    SetPushes(options.pushes, flags);
    flags.server_flags->on_attachments = options.on_attachments;
    flags.server_flags->program_optimizer = options.program_optimizer;
    if (options.transforms != nullptr) flags.server_flags->transforms = *options.transforms;
    AddJobFlags(app, flags);
  }

  // A text about the flags as the program's user writes them.
  std::string Written(absl::string_view text) const {
    return takes == TakenFlags::kPrefixed ? WithPrefix(app, text) : std::string(text);
  }
  // An error about them.
  absl::Status Written(const absl::Status& why) const {
    absl::Status written(why.code(), Written(NameVariables(std::string(why.message()))));
    why.ForEachPayload([&written](absl::string_view type, const absl::Cord& payload) {
      written.SetPayload(type, payload);
    });
    return written;
  }

  const TakenFlags takes;
  CLI::App app;
  JobFlags flags;
};

// Leaves the program's name and its own arguments.
void Keep(const std::vector<char*>& left, int* argc, char** argv) {
  std::copy(left.begin(), left.end(), argv + 1);
  *argc = static_cast<int>(left.size()) + 1;
  argv[*argc] = nullptr;
}

// What TryStart() returns when the arguments cannot be used, or ask for a text and for no job: that
// is CANCELLED, and one rank has the text.
absl::Status WhyNotParsed(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() != 0) return ShareFailure(absl::InvalidArgumentError(error.what()));
  std::string asked = error.what();
  if (dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr) asked = app.help();
  if (dynamic_cast<const CLI::CallForAllHelp*>(&error) != nullptr) {
    asked = app.help("", CLI::AppFormatMode::All);
  }
  const absl::Status text = absl::CancelledError(asked);
  const absl::Status shared = ShareFailure(text);
  return IsSaidByAnotherRank(shared) ? shared : text;
}

void WarnOf(const std::vector<std::string>& flags) {
  for (const std::string& flag : flags) {
    LOG(WARNING) << flag << " is not taken: write --sluice-" << flag.substr(2);
  }
}

void PrepareProcess() {
  InitLogging();
  KeepFreedMemory();
  TrustLockOrder();
}

}  // namespace

Job::Job(std::unique_ptr<WorkerContext> context, std::unique_ptr<JobServer> server)
    : context_(std::move(context)), server_(std::move(server)) {}
Job::Job(Job&&) noexcept = default;
Job::~Job() = default;

Job Job::Start(int* argc, char*** argv, const JobOptions& options) {
  absl::StatusOr<Job> job = TryStart(argc, argv, options);
  if (job.ok()) return *std::move(job);
  if (std::find(*argv, *argv + *argc, absl::string_view("--help")) != *argv + *argc) {
    const CommandLine line(options);
    std::cout << line.Written(line.app.help((*argv)[0]));
    exit(0);
  }
  if (absl::IsCancelled(job.status())) {
    if (!IsSaidByAnotherRank(job.status())) std::cout << job.status().message() << "\n";
    exit(0);
  }
  const int code = absl::IsInvalidArgument(job.status()) ? kBadUsage : 1;
  exit(ReportFailure((*argv)[0], job.status(), code));
}

absl::StatusOr<Job> Job::TryStart(int* argc, char*** argv, const JobOptions& options) {
  CommandLine line(options);
  ProgramArguments arguments;
  try {
    arguments = ParseProgramArguments(line.app, line.takes, *argc, *argv);
  } catch (const CLI::ParseError& error) {
    return line.Written(WhyNotParsed(line.app, error));
  }
  if (options.refuses_server_flags) {
    const absl::Status placed = CheckFlagsOfServer(line.app, line.flags, arguments.taken);
    if (!placed.ok()) return line.Written(ShareFailure(placed));
  }
  absl::StatusOr<Job> job = Start(line.flags);
  if (!job.ok()) return line.Written(job.status());
  Keep(arguments.left, argc, *argv);
  if (!job->is_server() && job->speaks()) WarnOf(arguments.look_like_ours);
  return job;
}

absl::StatusOr<Job> Job::Observe(const JobFlags& flags) {
  PrepareProcess();
  absl::StatusOr<WorkerContext> context = WorkerContext::From(flags);
  if (!context.ok()) return context.status();
  context->TakePlace(absl::nullopt, absl::nullopt);
  return Job(std::make_unique<WorkerContext>(*std::move(context)), nullptr);
}

absl::StatusOr<Job> Job::Start(const JobFlags& flags) {
  PrepareProcess();
  const bool remote = !flags.server.empty();
  absl::StatusOr<WorkerContext> context = WorkerContext::From(flags);
  std::unique_ptr<JobServer> server;
  absl::optional<uint32_t> index;
  absl::optional<uint32_t> workers;
  if (LaunchedByMpi()) {
    auto launch = TakePartInLaunch(
        *flags.server_flags, remote ? ServerPlace::kElsewhere : ServerPlace::kAnyRanks, flags.name,
        [&context](const MpiWorld&) { return context.status(); });
    if (!launch.ok()) return launch.status();
    if (!remote && launch->server == nullptr) OutliveServer();
    if (!remote) context->TakeTicket(std::move(launch->ticket), std::move(launch->check_servers));
    server = std::move(launch->server);
    index = WorkerIndex(launch->server_ranks, launch->world.rank);
    workers = static_cast<uint32_t>(launch->world.size - launch->server_ranks.size());
  } else {
    absl::Status sound = context.status();
    sound.Update(CheckStartedByHand(*flags.server_flags));
    if (!sound.ok()) return sound;
    if (!remote) {
      return absl::InvalidArgumentError(
          "no server: give --server=host:port, or launch with mpirun, where rank 0 is the server");
    }
  }
  context->TakePlace(index, workers);
  const std::string& trace = flags.server_flags->trace;
  if (!trace.empty() && server == nullptr) {
    const absl::Status opened = context->OpenTrace(trace);
    if (!opened.ok()) return opened;
  }
  return Job(std::make_unique<WorkerContext>(*std::move(context)), std::move(server));
}

int Job::Serve() { return server_->Serve(); }

bool Job::speaks() const { return context_->index().value_or(0) == 0; }

absl::optional<uint32_t> Job::rank() const { return context_->index(); }

absl::optional<uint32_t> Job::size() const { return context_->workers(); }

const std::string& Job::name() const { return context_->name(); }

Job Job::WorkerNamed(const std::string& name) const {
  return Job(std::make_unique<WorkerContext>(context_->WorkerNamed(name)), nullptr);
}

absl::StatusOr<Job> Job::Model(const std::string& name) const {
  if (is_server()) {
    return absl::FailedPreconditionError(
        "this process serves, and trains no model; call Serve() instead");
  }
  absl::StatusOr<WorkerContext> context = context_->ForModel(name);
  if (!context.ok()) return context.status();
  return Job(std::make_unique<WorkerContext>(*std::move(context)), nullptr);
}

absl::StatusOr<std::vector<std::string>> Job::ModelNames() const {
  return ModelNamesOverGrpc(context_->ConnectionOptions());
}

absl::StatusOr<std::vector<std::string>> Job::AllGather(absl::string_view data,
                                                        absl::Duration wait) const {
  return context_->AllGather(data, wait);
}

}  // namespace sluice
