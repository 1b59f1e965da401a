#include "server/server.h"

#include <glog/logging.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/thread_pool.h"
#include "server/admission/draining.h"
#include "server/closing_table.h"
#include "server/durable/recovery.h"
#include "server/durable/save_checkpoint.h"
#include "server/policy/mode_options.h"
#include "server/rpc/access/rpc_limits.h"
#include "server/rpc/listening/open_files.h"

namespace sluice {
namespace {

// How often leases are checked, and so how late they may end.
constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr int kEveryWorkerLost = 3;
constexpr int kUnbalancedCounters = 4;
constexpr int kNotSaved = 5;
constexpr int kDiverged = 7;
// So many steps after the first suspect one, the log says that the last checkpoint is suspect.
constexpr uint64_t kSuspiciousSteps = 10;

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

// Waits for one tick. Returns the signal that arrived, or 0.
int WaitForStopSignal() {
  const sigset_t signals = StopSignals();
  const timespec tick = absl::ToTimespec(kTick);
  return std::max(sigtimedwait(&signals, nullptr, &tick), 0);
}

// Each connection takes two of the files that this process may have open.
void RaiseOpenFiles(const ServerOptions& options) {
  const OpenFiles limit = RaiseOpenFilesLimit();
  const int connections = ConnectionsThatFit(options.limits, limit.now);
  if (static_cast<uint32_t>(connections) >= options.shard.max_sessions) return;
  LOG(WARNING)
      << "--max-workers=" << options.shard.max_sessions << ", but only " << connections
      << " connections are possible: this process may open " << limit.now
      << " files, of which each connection takes two, and --max-connections="
      << options.limits.connections
      << "; raise the limit that is too low (ulimit -Hn for files), or lower --max-workers";
}

bool AnyLeftInGoodOrder(const std::vector<SessionRecord>& sessions) {
  return std::any_of(sessions.begin(), sessions.end(), [](const SessionRecord& record) {
    return record.role == SessionRole::kWorker && record.presence == Presence::kLeft;
  });
}

bool AnyIsPresent(const std::vector<SessionRecord>& sessions) {
  return std::any_of(sessions.begin(), sessions.end(), [](const SessionRecord& record) {
    return record.presence == Presence::kPresent;
  });
}

}  // namespace

Server::Server(const ServerOptions& options, std::unique_ptr<DurableDirectory> durable,
               std::unique_ptr<Trace> trace)
    : exit_when_finished_(options.exit_when_finished),
      grace_(options.grace),
      step_wait_log_(options.log_step_wait),
      trace_(std::move(trace)),
      lease_(options.shard.lease),
      shard_(
          options.shard, RealClock(),
          [this](const JobEvent& event) {
            if (event.kind == JobEvent::Kind::kDeserted) deserted_ = true;
            if (event.kind == JobEvent::Kind::kDraining) drained_ = true;
          },
          std::make_unique<ThreadPool>(options.threads), trace_.get()),
      durable_(std::move(durable)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  RaiseOpenFiles(options);
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::unique_ptr<Trace> trace;
  if (!options.trace_file.empty()) {
    auto opened = Trace::Open(options.trace_file, options.existing_trace, "server", RealClock());
    if (!opened.ok()) return opened.status();
    trace = *std::move(opened);
  }
  options.shard.tick = kTick;
  std::unique_ptr<DurableDirectory> durable;
  if (!options.durable.directory.empty()) {
    auto opened = DurableDirectory::Open(options.durable, *options.files);
    if (!opened.ok()) return opened.status();
    durable = *std::move(opened);
    options.shard.incarnation = durable->incarnation();
    if (!durable->job_id().empty()) options.shard.job_id = durable->job_id();
  }
  std::unique_ptr<Server> server(new Server(options, std::move(durable), std::move(trace)));
  if (server->durable_ != nullptr) {
    const absl::Status recovered = Recover(*server->durable_, server->shard_);
    if (!recovered.ok()) return recovered;
  }
  if (!options.listen.has_value()) {
    const absl::Status placed = server->ChoosePrivateSocket(&options);
    if (!placed.ok()) return placed;
  }
  auto door = StartGrpcServer(
      {*options.listen, options.token, options.credentials, options.limits, options.transforms},
      server->shard_, server->durable_.get());
  if (!door.ok()) return door.status();
  server->grpc_server_ = *std::move(door);
  LOG(INFO) << "job " << options.shard.job_id << ": listening on " << server->address().ToString()
            << (options.credentials != nullptr ? ", with mutual TLS" : "");
  // Of the shard, which may continue with an operator's rules.
  LOG(INFO) << "mode " << DescribeMode(server->shard_.Describe().consistency)
            << "; the first step waits for " << options.shard.expected_workers << " workers";
  return server;
}

absl::Status Server::ChoosePrivateSocket(ServerOptions* options) {
  std::string directory = options->directory;
  if (directory.empty()) {
    auto made = PrivateDirectory::Create();
    if (!made.ok()) return made.status();
    directory_ = *std::move(made);
    directory = directory_->path();
  }
  options->listen.emplace();
  options->listen->unix_path = absl::StrCat(directory, "/server.sock");
  return absl::OkStatus();
}

int Server::Serve() {
  int signal = 0;
  while (signal == 0 && !IsOver()) {
    signal = WaitForStopSignal();
    shard_.Tick();
    const absl::optional<std::string> waits = step_wait_log_.Look(shard_.Describe());
    if (waits.has_value()) LOG(WARNING) << *waits;
  }
  const bool finished = shard_.Describe().phase == Phase::kFinished;
  if (signal != 0) {
    LOG(INFO) << "draining after " << strsignal(signal);
    shard_.Drain();
  }
  if (shard_.Describe().diverged) AwaitFarewell();
  // Nobody needs the socket's name any more, and a launcher may kill this process soon.
  directory_.reset();
  if (durable_ != nullptr) durable_->FlushJournal();
  shard_.FailHeldAnswers(DrainingError());
  grpc_server_->Shutdown(grace_);
  const absl::Status saved = SaveLast();
  const PushCounters counters = shard_.Describe().counters;
  if (!counters.Balanced() || counters.in_progress > 0) {
    LOG(ERROR) << "the counters of pushes do not balance; this is a bug of the server";
    return kUnbalancedCounters;
  }
  if (!saved.ok()) return kNotSaved;
  if (shard_.Describe().diverged) return kDiverged;
  if (!finished || AnyLeftInGoodOrder(shard_.Sessions())) return 0;
  LOG(ERROR) << "every worker was lost";
  return kEveryWorkerLost;
}

// Each worker and observer hears with its next call why the job ends, and goes. One that has not
// called for the time of a lease is not waited for.
void Server::AwaitFarewell() {
  const absl::Time until = RealClock().Now() + lease_;
  while (AnyIsPresent(shard_.Sessions()) && RealClock().Now() < until && WaitForStopSignal() == 0) {
    shard_.Tick();
  }
}

// Saves a checkpoint of the last step, if there are parameters; but if training diverged, the
// directory keeps what was saved before.
absl::Status Server::SaveLast() {
  if (durable_ == nullptr || shard_.snapshot() == nullptr) return absl::OkStatus();
  const ShardStatus state = shard_.Describe();
  if (state.diverged) {
    LOG(WARNING) << "no last checkpoint is saved, because training diverged" << HowToGoBack(state);
    return absl::OkStatus();
  }
  const absl::Status saved = SaveCheckpointAndWait(shard_, *durable_);
  const Step since = state.suspect_since.value_or(state.step);
  if (saved.ok() && state.step.value() - since.value() >= kSuspiciousSteps) {
    LOG(WARNING) << "the last checkpoint may be a bad one, because training seems to diverge"
                 << HowToGoBack(state);
  }
  return saved;
}

// How to leave the suspect steps out, if there are any.
std::string Server::HowToGoBack(const ShardStatus& state) {
  if (!state.suspect_since.has_value()) return "";
  const std::string since = absl::StrCat(" since step ", state.suspect_since->value());
  const std::string better = durable_->NewestBefore(*state.suspect_since);
  if (better.empty()) return absl::StrCat(since, "; no checkpoint is from before");
  return absl::StrCat(since, "; the newest checkpoint from before is ", better,
                      ": a server that is started with this directory continues from there if you "
                      "remove the later ones",
                      durable_->journals() ? " and the files journal-* and kept" : "");
}

std::string Server::ClosingTable() const {
  const std::shared_ptr<const Snapshot> parameters = shard_.snapshot();
  return sluice::ClosingTable(
      shard_.Describe(), shard_.results(),
      parameters == nullptr ? absl::Span<const float>() : parameters->values.span());
}

}  // namespace sluice
