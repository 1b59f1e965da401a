#include "worker/c/job.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/base/version.h"
#include "common/launch/failure.h"
#include "server/program/server_program.h"
#include "worker/c/server_optimizer.h"
#include "worker/data/sampler.h"
#include "worker/job_flags.h"
#include "worker/worker_context.h"

namespace sluice {
namespace {

struct LastError {
  absl::Status status;
  std::string message;
  std::string reason;
};

pthread_t serving_thread;

// Until the server has started, nobody waits for signals: then they end the process, as without it.
void ForwardToServingThread(int signal) {
  if (pthread_equal(pthread_self(), serving_thread) != 0) std::signal(signal, SIG_DFL);
  pthread_kill(serving_thread, signal);
}

// While it exists, SIGINT, SIGTERM and SIGHUP reach this thread, where they are blocked and the
// server waits for them. The program may have other threads, of a language or a library, which do
// not block them.
class StopSignalsForThisThread {
 public:
  StopSignalsForThisThread() {
    serving_thread = pthread_self();
    struct sigaction action = {};
    action.sa_handler = ForwardToServingThread;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &interrupt_before_);
    sigaction(SIGTERM, &action, &terminate_before_);
    sigaction(SIGHUP, nullptr, &hangup_before_);
    if (hangup_before_.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  }
  ~StopSignalsForThisThread() {
    sigaction(SIGINT, &interrupt_before_, nullptr);
    sigaction(SIGTERM, &terminate_before_, nullptr);
    sigaction(SIGHUP, &hangup_before_, nullptr);
  }

  StopSignalsForThisThread(const StopSignalsForThisThread&) = delete;
  StopSignalsForThisThread& operator=(const StopSignalsForThisThread&) = delete;

 private:
  struct sigaction interrupt_before_ = {};
  struct sigaction terminate_before_ = {};
  struct sigaction hangup_before_ = {};
};

uint64_t FloatsOfThisMachine() {
  const auto pages = static_cast<uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L));
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / sizeof(float);
}

LastError& LastErrorOfThisThread() {
  thread_local LastError error;
  return error;
}

// What the program sets before it starts.
JobOptions& OptionsOfProgram() {
  static auto* const options = new JobOptions();
  return *options;
}

AttachmentHook HookOf(sluice_attachment_reader reader, void* context) {
  return [reader, context](const std::string& worker, Step step, const Attachments& attachments) {
    std::vector<sluice_attachment> of_c;
    for (const Attachment& each : attachments) {
      of_c.push_back({each.type.c_str(), each.data.data(), each.data.size()});
    }
    reader(context, worker.c_str(), step.value(), of_c.data(), of_c.size());
  };
}

absl::Status StartJob(bool takes_all_flags, int* argc, char** argv, sluice_job** job) {
  if (*argc < 1) {
    return absl::InvalidArgumentError(
        "sluice_start() got no arguments, expected the program's name at least");
  }
  static bool started_before = false;
  if (started_before) {
    return absl::FailedPreconditionError(
        "sluice_start() was called twice; keep the job of the first call");
  }
  JobOptions options = OptionsOfProgram();
  options.takes_all_flags = takes_all_flags;
  options.refuses_server_flags = false;  // a program's own settings may be among them (Python's)
  absl::StatusOr<Job> started = Job::TryStart(argc, &argv, options);
  if (!started.ok()) return started.status();
  started_before = true;
  *job = new sluice_job(*std::move(started));
  return absl::OkStatus();
}

// A job of a server that runs elsewhere, for an observer.
absl::StatusOr<Job> ConnectingJob(const char* const* flags, size_t count) {
  std::vector<const char*> words = {"sluice_connect"};
  words.insert(words.end(), flags, flags + count);
  CLI::App app;
  app.set_help_flag();
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  JobFlags parsed;
  AddConnectionFlags(app, parsed);
  try {
    ParseArguments(app, static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  if (parsed.server.empty()) {
    return absl::InvalidArgumentError("no server: give --server=host:port or --server=unix:/path");
  }
  return Job::Observe(parsed);
}

}  // namespace

sluice_code CodeOf(const absl::Status& status) {
  if (status.ok()) return SLUICE_OK;
  LastError& last = LastErrorOfThisThread();
  const Reason reason = ReasonOf(status);
  last.status = status;
  last.message = std::string(status.message());
  last.reason = reason == Reason::kNone ? "" : std::string(ReasonName(reason));
  return static_cast<sluice_code>(status.code());
}

}  // namespace sluice

const char* sluice_version() { return sluice::kVersion; }

const char* sluice_error_message() { return sluice::LastErrorOfThisThread().message.c_str(); }

const char* sluice_error_reason() { return sluice::LastErrorOfThisThread().reason.c_str(); }

int sluice_report_error(const char* program) {
  const absl::Status& last = sluice::LastErrorOfThisThread().status;
  if (last.ok()) {
    return sluice::ReportFailure(
        program, absl::InternalError("no call of this thread has returned an error"));
  }
  if (absl::IsCancelled(last)) {
    if (!sluice::IsSaidByAnotherRank(last)) std::cout << last.message() << "\n" << std::flush;
    return 0;
  }
  return sluice::ReportFailure(program, last);
}

void sluice_set_server_optimizer(const sluice_server_optimizer* optimizer) {
  sluice::OptionsOfProgram().program_optimizer = sluice::FactoryOf(*optimizer);
}

void sluice_set_attachment_reader(sluice_attachment_reader reader, void* context) {
  sluice::OptionsOfProgram().on_attachments = sluice::HookOf(reader, context);
}

sluice_code sluice_start(int* argc, char** argv, sluice_job** job) {
  return sluice::CodeOf(sluice::StartJob(false, argc, argv, job));
}

sluice_code sluice_start_with_all_flags(int* argc, char** argv, sluice_job** job) {
  return sluice::CodeOf(sluice::StartJob(true, argc, argv, job));
}

sluice_code sluice_connect(const char* const* flags, size_t count, sluice_job** job) {
  absl::StatusOr<sluice::Job> connected = sluice::ConnectingJob(flags, count);
  if (!connected.ok()) return sluice::CodeOf(connected.status());
  *job = new sluice_job(*std::move(connected));
  return SLUICE_OK;
}

int sluice_is_server(const sluice_job* job) { return job->job.is_server() ? 1 : 0; }

int sluice_serve(sluice_job* job) {
  if (!job->job.is_server()) {
    sluice::CodeOf(absl::FailedPreconditionError(
        "sluice_serve() was called on a worker; call it only if sluice_is_server()"));
    return sluice_report_error("sluice_serve");
  }
  const sluice::StopSignalsForThisThread forwarded;
  return job->job.Serve();
}

int sluice_run_server(int argc, char** argv) {
  sluice::ServerProgramOptions options;
  options.on_attachments = sluice::OptionsOfProgram().on_attachments;
  options.program_optimizer = sluice::OptionsOfProgram().program_optimizer;
  const sluice::StopSignalsForThisThread forwarded;
  return sluice::RunServerProgram(argc, argv, options);
}

int sluice_speaks(const sluice_job* job) { return job->job.speaks() ? 1 : 0; }

int32_t sluice_job_rank(const sluice_job* job) {
  const absl::optional<uint32_t> rank = job->job.rank();
  return rank.has_value() ? static_cast<int32_t>(*rank) : -1;
}

int32_t sluice_job_size(const sluice_job* job) {
  const absl::optional<uint32_t> size = job->job.size();
  return size.has_value() ? static_cast<int32_t>(*size) : -1;
}

sluice_code sluice_job_model(const sluice_job* job, const char* name, sluice_job** model) {
  if (name == nullptr) {
    return sluice::CodeOf(absl::InvalidArgumentError(
        "sluice_job_model() got NULL for the model's name, expected a text"));
  }
  absl::StatusOr<sluice::Job> named = job->job.Model(name);
  if (!named.ok()) return sluice::CodeOf(named.status());
  *model = new sluice_job(*std::move(named));
  return SLUICE_OK;
}

sluice_code sluice_model_names(const sluice_job* job, char* names) {
  return sluice::Guarded([&] {
    const auto found = job->job.ModelNames();
    if (!found.ok()) return found.status();
    std::string all;
    for (const std::string& name : *found) absl::StrAppend(&all, name, absl::string_view("", 1));
    if (all.size() >= SLUICE_MODEL_NAMES) {
      return absl::InternalError("the server has more names of models than a job may have");
    }
    *std::copy(all.begin(), all.end(), names) = 0;
    return absl::OkStatus();
  });
}

sluice_code sluice_hold_job(const sluice_job* job) {
  return sluice::Guarded([&] { return job->job.context().HoldJob(); });
}

sluice_code sluice_all_gather(const sluice_job* job, const void* data, size_t size, double seconds,
                              sluice_gathered** gathered) {
  return sluice::Guarded([&] {
    auto given = job->job.AllGather({static_cast<const char*>(data), size}, absl::Seconds(seconds));
    if (given.ok()) *gathered = new sluice_gathered{*std::move(given)};
    return given.status();
  });
}

const void* sluice_gathered_data(const sluice_gathered* gathered, uint32_t rank, size_t* size) {
  const bool is_there = rank < gathered->data.size();
  *size = is_there ? gathered->data[rank].size() : 0;
  return is_there ? gathered->data[rank].data() : nullptr;
}

void sluice_gathered_free(sluice_gathered* gathered) { delete gathered; }

void sluice_job_free(sluice_job* job) { delete job; }

sluice_code sluice_order(uint64_t size, uint64_t seed, uint64_t epoch, int64_t* order) {
  sluice::SamplerOptions options;
  if (size > std::numeric_limits<int>::max()) {
    return sluice::CodeOf(absl::InvalidArgumentError(
        absl::StrCat("the data set has ", size, " rows, expected less than 2^31")));
  }
  if (size == 0) return SLUICE_OK;
  // One batch of all rows.
  options.dataset_size = static_cast<int64_t>(size);
  options.batch_size = static_cast<int>(size);
  options.seed = seed;
  return sluice::Guarded([&] {
    const std::vector<int64_t> rows =
        sluice::Sampler(options).Batch(static_cast<int64_t>(epoch), 0);
    std::copy(rows.begin(), rows.end(), order);
    return absl::OkStatus();
  });
}

sluice_buffer* sluice_buffer_create(uint64_t elements) {
  // Shared memory is taken at once, and the system would kill a process that takes too much.
  if (elements > sluice::FloatsOfThisMachine()) return nullptr;
  const auto memory = sluice::SharedMemory::Create(elements);
  if (memory.ok()) return new sluice_buffer{(*memory)->floats(), *memory, *memory};
  auto* const floats = static_cast<float*>(calloc(elements, sizeof(float)));
  if (floats == nullptr) return nullptr;
  const std::shared_ptr<const void> owner(floats, free);
  return new sluice_buffer{absl::MakeSpan(floats, elements), owner, nullptr};
}

float* sluice_buffer_floats(sluice_buffer* buffer) { return buffer->floats.data(); }

void sluice_buffer_free(sluice_buffer* buffer) { delete buffer; }
