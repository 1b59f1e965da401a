#include "server/server.h"

#include <glog/logging.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "common/base/error.h"
#include "common/base/random.h"
#include "server/admission/draining.h"
#include "server/closing_table.h"
#include "server/durable/save_checkpoint.h"
#include "server/job_outcome.h"
#include "server/observe/server_state.h"
#include "server/policy/mode_options.h"
#include "server/private_socket.h"
#include "server/rpc/access/rpc_limits.h"
#include "server/rpc/listening/open_files.h"
#include "server/stop_signals.h"
#include "server/tables/disk/disk_file.h"

namespace sluice {
namespace {

constexpr char kMetricsPath[] = "/metrics";
constexpr char kTracedAs[] = "server";  // the name of the process in a trace

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

// The page and the metrics may share a listener.
int HttpConnectionsOf(const ServerOptions& options) {
  size_t connections = 0;
  if (options.page.has_value()) connections += options.page->limits.connections;
  const bool shared = options.page.has_value() && options.metrics.has_value() &&
                      options.page->address.ToString() == options.metrics->address.ToString();
  if (options.metrics.has_value() && !shared) connections += options.metrics->limits.connections;
  return static_cast<int>(connections);
}

// The most returns of a job. Each halves the learning rate; less than an eighth would not help.
constexpr int kMostReturns = 3;
// How long calls that are under way may take to end before it goes back.
constexpr absl::Duration kLastCalls = absl::Milliseconds(100);

// The sentence of the divergence that lasts.
std::string DivergenceOf(const ShardStatus& state) {
  for (const TrainingWarning& warning : state.warnings) {
    const bool diverges = warning.kind == WarningKind::kNotFinite ||
                          warning.kind == WarningKind::kParametersGrow ||
                          warning.kind == WarningKind::kLossRises;
    if (diverges && !warning.over.has_value()) return warning.text;
  }
  return "training diverges";
}

TrainingWarning WentBack(const ShardStatus& state, Step since, const std::string& checkpoint) {
  std::string slower;
  if (state.base_learning_rate > 0) {  // else the workers apply their own optimizers
    slower = absl::StrCat(", with the learning rate ", state.base_learning_rate / 2,
                          " in place of ", state.base_learning_rate);
  }
  const std::string text =
      absl::StrCat("training has gone back from step ", state.step.value(), " to ", checkpoint,
                   slower, ", because ", DivergenceOf(state));
  return {WarningKind::kWentBack, since, absl::nullopt, text};
}

// So many steps after the first suspect one, the log says that the last checkpoint is suspect.
constexpr uint64_t kSuspiciousSteps = 10;

// `metrics` outlives them.
std::vector<HttpRoute> RoutesOf(ServerMetrics& metrics) {
  HttpRoute route;
  route.path = kMetricsPath;
  route.handle = [&metrics](const HttpRequest&) {
    return HttpText(200, metrics.Text(), ServerMetrics::kContentType);
  };
  return {route};
}

bool AnyIsPresent(const std::vector<SessionRecord>& sessions) {
  return std::any_of(sessions.begin(), sessions.end(), [](const SessionRecord& record) {
    return record.presence == Presence::kPresent;
  });
}

}  // namespace

Server::Server(ServerOptions options, std::unique_ptr<Trace> trace)
    : options_(std::move(options)),
      step_wait_log_(options_.log_step_wait),
      trace_(std::move(trace)),
      operator_page_(options_.configuration, options_.log) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  options.limits.http_connections = HttpConnectionsOf(options);
  RaiseOpenFiles(options);
  BlockStopSignals();
  auto trace = std::make_unique<Trace>(absl::nullopt, kTracedAs, RealClock());
  if (!options.trace_file.empty()) {
    auto opened = Trace::Open(options.trace_file, options.existing_trace, kTracedAs, RealClock());
    if (!opened.ok()) return opened.status();
    trace = *std::move(opened);
  }
  if (!options.table_directory.empty()) {
    auto disk = RowDisk::Open(options.table_directory);
    if (!disk.ok()) return disk.status();
    options.shard.table_memory.disk = *std::move(disk);
  }
  options.shard.tick = kServerTick;
  std::unique_ptr<Server> server(new Server(std::move(options), std::move(trace)));
  if (!server->options_.listen.has_value()) {
    auto chosen = ChoosePrivateSocket(server->options_.directory);
    if (!chosen.ok()) return chosen.status();
    server->options_.listen = chosen->address;
    server->directory_ = std::move(chosen->directory);
  }
  auto event_files = EventFiles::Open(server->options_.event_files, RealClock().Now());
  if (!event_files.ok()) return event_files.status();
  server->event_files_ = *std::move(event_files);
  const absl::Status serves = server->ServeHttp();
  if (!serves.ok()) return serves;
  if (NamedModels::MayHave(server->options_)) {
    server->named_ = std::make_unique<NamedModels>(server->options_, server->trace_.get());
    server->metrics_.AddNamed([named = server->named_.get()] { return named->Shards(); });
  }
  auto begun =
      ServerIncarnation::Start(server->options_, server->trace_.get(), server->named_.get());
  if (!begun.ok()) return begun.status();
  server->TakeIncarnation(*std::move(begun));
  server->options_.listen = server->incarnation_->address();
  // Of the shard, which may continue with an operator's rules.
  const ShardStatus state = server->shard().Describe();
  LOG(INFO) << "job " << state.job_id << ": listening on " << server->address().ToString()
            << (server->options_.credentials != nullptr ? ", with mutual TLS" : "");
  LOG(INFO) << "mode " << DescribeMode(state.consistency) << "; the first step waits for "
            << state.expected_workers << " workers";
  return server;
}

// Before the incarnation, which may take long to load a checkpoint: an address in use is told soon.
absl::Status Server::ServeHttp() {
  if (options_.metrics.has_value()) http_.Add(*options_.metrics, RoutesOf(metrics_));
  if (options_.page.has_value()) {
    page_ = MakePage();
    http_.Add(*options_.page, page_->Routes());
    http_.Add(*options_.page, operator_page_.Routes());
    runs_page_ = std::make_unique<RunsPage>(options_.page_runs);
    http_.Add(*options_.page, {runs_page_->Route()});
  }
  BeginSpans();
  const absl::Status listens = http_.Start();
  if (!listens.ok()) return listens;
  if (options_.metrics.has_value()) {
    const HttpServer& listener = *http_.Of(kMetricsPath);
    options_.metrics->address = listener.address();
    LOG(INFO) << "metrics at " << absl::StripSuffix(listener.url(), "/") << kMetricsPath;
  }
  if (page_ != nullptr) LOG(INFO) << "the live page is at " << http_.Of("/")->url();
  return absl::OkStatus();
}

// The metrics and the page hear how long steps take. Without both, no clock is read for it.
void Server::BeginSpans() {
  const SpanListener metrics =
      options_.metrics.has_value() ? metrics_.BeginIncarnation() : SpanListener();
  const SpanListener page = page_ != nullptr ? page_->OnSpan() : SpanListener();
  options_.shard.on_span = page == nullptr ? metrics : page;
  if (metrics == nullptr || page == nullptr) return;
  options_.shard.on_span = [metrics, page](ServerSpan span, absl::Duration length) {
    metrics(span, length);
    page(span, length);
  };
}

void Server::TakeIncarnation(std::unique_ptr<ServerIncarnation> incarnation) {
  incarnation_ = std::move(incarnation);
  metrics_.Attach(incarnation_->shard(), incarnation_->durable());
  operator_page_.Attach(incarnation_->shard(), incarnation_->durable());
}

std::unique_ptr<LivePage> Server::MakePage() const {
  LivePageOptions page;
  if (!options_.durable.directory.empty()) {
    page.history_file = options_.durable.directory + "/page-history";
    page.journals = options_.durable.durability == Durability::kJournal;
  }
  page.files = options_.files;
  page.memory_limit = options_.memory_limit;
  return std::make_unique<LivePage>(page);
}

JobMoment Server::Moment(const ShardStatus& state, bool going_down) const {
  JobMoment moment = MomentOf(state, incarnation_->shard(), incarnation_->durable());
  if (named_ != nullptr) JudgeJob([this] { return named_->Shards(); }, &moment.state);
  moment.going_down = going_down;
  return moment;
}

// Returns the signal that ended it, or 0 if the job is over; or the error of GoBack().
absl::StatusOr<int> Server::AwaitEnd() {
  while (!IsOver()) {
    const int signal = WaitForStopSignal();
    if (signal != 0) return signal;
    Shard& shard = incarnation_->shard();
    incarnation_->Tick();
    if (named_ != nullptr) named_->Tick();
    idle_memory_.Look(RealClock().Now());
    const ShardStatus state = shard.Describe();
    const absl::optional<std::string> waits = step_wait_log_.Look(state);
    if (waits.has_value()) LOG(WARNING) << *waits;
    if (page_ != nullptr) page_->Look(RealClock().Now(), [&] { return Moment(state); });
    event_files_->Look(RealClock().Now(), [&] { return Moment(state); });
    left_alone_ = IsLeftAlone(state);
    const ReplicaLoss loss = incarnation_->lost_replica();
    const bool trains = state.phase == Phase::kTraining && state.workers > 0;
    absl::StatusOr<bool> goes_on = true;
    if (loss.is_back) {
      goes_on = GoBackForReplica(loss);
    } else if (state.goes_back && trains) {
      goes_on = GoBack(state);
    }
    if (!goes_on.ok()) return goes_on.status();
    if (!*goes_on) return 0;
  }
  return 0;
}

// Whether no worker can join, and none has joined this incarnation.
bool Server::IsLeftAlone(const ShardStatus& state) const {
  if (!options_.exit_when_finished || state.phase != Phase::kWaitingForWorkers ||
      !options_.is_left_alone || !options_.is_left_alone()) {
    return false;
  }
  return !AnyHasJoined(shard().Sessions()) && !OnlyNamedTrain();
}

// Whether models with names are trained, and the one without a name is not.
bool Server::OnlyNamedTrain() const {
  return named_ != nullptr && named_->AnyHasTrained() &&
         incarnation_->shard().store().stripe().latest() == nullptr &&
         !AnyHasJoined(shard().Sessions());
}

bool Server::IsOver() const {
  const ReplicaLoss lost = incarnation_->lost_replica();
  const bool ends = !lost.why.empty() && !lost.is_back && !shard().Describe().end_is_saved;
  if (incarnation_->drained() || ends) return true;
  if (!options_.exit_when_finished) return false;
  const bool others_are_over = named_ == nullptr || named_->AreOver();
  return left_alone_ || (others_are_over && (incarnation_->deserted() || OnlyNamedTrain()));
}

// ---- Going back to a checkpoint, in the same process ----

// Goes on from the newest checkpoint that is from before the suspect steps, with half the learning
// rate. Ends the job if there is none, or if that has not helped often enough. Returns whether the
// job goes on. An error leaves no incarnation.
absl::StatusOr<bool> Server::GoBack(const ShardStatus& state) {
  const Step since = state.suspect_since.value_or(state.step);
  Shard& shard = incarnation_->shard();
  DurableDirectory& durable = *incarnation_->durable();
  const auto checkpoint =
      durable.saver().FindWayBack(since);  // takes time, in which training goes on
  if (!checkpoint.has_value() || returns_ == kMostReturns) {
    const std::string why = checkpoint.has_value()
                                ? absl::StrCat("the server has gone back ", returns_, " times")
                                : "no checkpoint from before can be loaded";
    LOG(ERROR) << "the job ends: " << why;
    shard.Drain(DivergedError(absl::StrCat(DivergenceOf(state), "; ", why)));
    return true;
  }
  // Workers join again, as after a crash.
  const absl::Status why = absl::UnavailableError("the server goes back to a checkpoint");
  if (!shard.Suspend(why)) return true;
  incarnation_->Shutdown(why, kLastCalls);
  // Meanwhile the last worker may have left, or an operator may have ended the job.
  if (incarnation_->drained() || shard.Describe().workers == 0) {
    shard.Drain();
    return false;
  }
  ++returns_;
  options_.shard.warnings = {WentBack(state, since, durable.saver().PathOf(*checkpoint))};
  LOG(WARNING) << options_.shard.warnings[0].text;
  options_.shard.goes_on = true;
  const absl::Status removed = durable.GoBackTo(*checkpoint);
  EndForNext();
  if (!removed.ok()) return removed;
  auto again = ServerIncarnation::Start(options_, trace_.get(), nullptr, state);
  if (!again.ok()) return again.status();
  TakeIncarnation(*std::move(again));
  return true;
}

// Another server was started again, and its part of the parameters is lost. All servers continue
// from the newest checkpoint and their journals, as after a crash of all. Returns and fails as
// GoBack() does.
absl::StatusOr<bool> Server::GoBackForReplica(const ReplicaLoss& loss) {
  Shard& shard = incarnation_->shard();
  const bool repeats = options_.durable.durability == Durability::kJournal;
  const absl::Status why = absl::UnavailableError(
      absl::StrCat(loss.why, "; all servers go back to the last checkpoint",
                   repeats ? ", and repeat the steps of their journals" : ""));
  LOG(WARNING) << why.message();
  incarnation_->StopWaiting(why);
  const ShardStatus state = shard.Describe();
  if (incarnation_->drained()) return false;
  shard.Suspend(why);  // unless there are no workers
  incarnation_->Shutdown(why, kLastCalls);
  if (incarnation_->drained()) return false;
  options_.shard.goes_on = options_.shard.goes_on || state.phase == Phase::kTraining;
  EndForNext();
  auto again = ServerIncarnation::Start(options_, trace_.get(), nullptr);
  if (!again.ok()) return again.status();
  TakeIncarnation(*std::move(again));
  return true;
}

// Ends an incarnation that was shut down, and its lock of the directory. The next one has other
// session numbers.
void Server::EndForNext() {
  options_.shard.session_base = SessionId(RandomNonce().value() >> 1);
  options_.shard.launched = Launched::kAgain;
  operator_page_.Detach();
  metrics_.Detach();
  incarnation_ = nullptr;
  BeginSpans();
}

// ---- The end of the job ----

int Server::Serve() {
  const absl::StatusOr<int> signal = AwaitEnd();
  if (!signal.ok()) {
    LOG(ERROR) << "the server cannot go back: " << signal.status().message();
    return kNotRestored;
  }
  Shard& shard = incarnation_->shard();
  const bool finished = shard.Describe().phase == Phase::kFinished;
  if (*signal != 0) {
    LOG(INFO) << "draining after " << strsignal(*signal) << LostBefore(shard.Sessions());
    shard.Drain();
  }
  const std::string lost = LostReplica(finished);
  if (!lost.empty()) {
    LOG(ERROR) << lost;
    shard.Drain(MakeError(Reason::kDraining, lost));
  }
  if (shard.Describe().diverged) AwaitFarewell();
  const int outcome = lost.empty() ? Outcome(finished) : kReplicaLost;
  // Afterwards the other servers are gone; alone, this one may still make a step.
  absl::Status saved;
  if (options_.servers > 1 && lost.empty()) {
    saved = SaveLast();
    if (!shard.durability().recovers()) crc_ = shard.Digest(options_.grace);
  }
  EndReplicas(saved.ok() ? outcome : kNotSaved);
  if (named_ != nullptr) named_->Drain();
  // Nobody needs the socket's name any more, and a launcher may kill this process soon.
  directory_.reset();
  if (page_ != nullptr) page_->Show(Moment(shard.Describe(), /*going_down=*/true));
  if (named_ != nullptr) named_->EndAnswers(DrainingError());
  incarnation_->Shutdown(DrainingError(), options_.grace);
  if (options_.servers == 1) {
    saved = SaveLast();
    crc_ = shard.Digest(options_.grace);
  }
  if (named_ != nullptr) saved.Update(named_->SaveLast());
  if (page_ != nullptr) page_->End(Moment(shard.Describe(), /*going_down=*/true));
  event_files_->End([&] { return Moment(shard.Describe()); });
  if (named_ != nullptr) named_->TellEnd();
  if (!CountersBalance(shard) || (named_ != nullptr && !named_->CountersBalance())) {
    LOG(ERROR) << "the counters of pushes do not balance; this is a bug of the server";
    return kUnbalancedCounters;
  }
  if (!saved.ok()) return kNotSaved;
  if (outcome == kEveryWorkerLost || outcome == kNotFinite) {
    LOG(ERROR) << (left_alone_ ? "all other ranks of the launch have ended, and none has joined"
                               : WhyItEnds(outcome, shard.Sessions()));
  }
  const int of_named = named_ == nullptr ? kEndedWell : named_->Outcome();
  return outcome == kEndedWell ? of_named : outcome;
}

// The exit code, as far as it is known before the last calls have ended.
int Server::Outcome(bool finished) const {
  return left_alone_ ? kEveryWorkerLost : OutcomeOf(shard(), finished);
}

// Why a server that was lost ends the job; empty: it does not. Without that server all workers may
// be lost, too, before its lease is over.
std::string Server::LostReplica(bool finished) const {
  if (shard().Describe().end_is_saved) return "";
  const std::string away = incarnation_->away_replica();
  if (away.empty() || Outcome(finished) != kEveryWorkerLost) {
    return incarnation_->lost_replica().why;
  }
  return absl::StrCat(away, ", and every worker was lost; the job cannot go on");
}

// The other servers end when they have heard it. One that is away hears nothing.
void Server::EndReplicas(int exit_code) {
  incarnation_->EndReplicas(exit_code);
  const absl::Time until = RealClock().Now() + options_.grace;
  while (!incarnation_->ReplicasHaveEnded() && RealClock().Now() < until) WaitForStopSignal();
}

// Each worker and observer hears with its next call why the job ends, and goes. One that has not
// called for the time of a lease is not waited for.
void Server::AwaitFarewell() {
  const absl::Time until = RealClock().Now() + options_.shard.lease;
  while (AnyIsPresent(shard().Sessions()) && RealClock().Now() < until &&
         WaitForStopSignal() == 0) {
    incarnation_->Tick();
    if (named_ != nullptr) named_->Tick();
  }
}

// Saves a checkpoint of the last step, if there are parameters; but if training diverged, the
// directory keeps what was saved before.
absl::Status Server::SaveLast() {
  DurableDirectory* const durable = incarnation_->durable();
  if (durable == nullptr || incarnation_->shard().store().stripe().latest() == nullptr)
    return absl::OkStatus();
  if (incarnation_->shard().durability().recovers()) {
    LOG(INFO) << "no last checkpoint is saved, because the servers have not restored their state";
    return absl::OkStatus();
  }
  const ShardStatus state = shard().Describe();
  if (state.diverged) {
    LOG(WARNING) << "no last checkpoint is saved, because training diverged" << HowToGoBack(state);
    return absl::OkStatus();
  }
  const bool all_are_there =
      incarnation_->away_replica().empty() && incarnation_->lost_replica().why.empty();
  absl::Status saved;
  if (!state.end_is_complete && (all_are_there || !state.end_is_saved)) {
    saved = options_.servers == 1 ? SaveCheckpointAndWait(incarnation_->shard(), *durable)
                                  : SaveWithReplicas();
  }
  const Step since = state.suspect_since.value_or(state.step);
  if (saved.ok() && state.step.value() - since.value() >= kSuspiciousSteps) {
    LOG(WARNING) << "the last checkpoint may be a bad one, because training seems to diverge"
                 << HowToGoBack(state);
  }
  return saved;
}

// Fails if another server is lost meanwhile.
absl::Status Server::SaveWithReplicas() {
  const auto done = std::make_shared<absl::Notification>();
  const auto result = std::make_shared<absl::Status>();
  SaveCheckpoint(incarnation_->shard(), *incarnation_->durable(),
                 [done, result](absl::StatusOr<SavedCheckpoint> saved) {
                   *result = std::move(saved).status();
                   done->Notify();
                 });
  while (!done->HasBeenNotified()) {
    WaitForStopSignal();
    incarnation_->Tick();
    const ReplicaLoss lost = incarnation_->lost_replica();
    if (lost.why.empty()) continue;
    LOG(ERROR) << "cannot save the last checkpoint: " << lost.why;
    incarnation_->StopWaiting(absl::UnavailableError(lost.why));
    return absl::UnavailableError(lost.why);
  }
  return *result;
}

// How to leave the suspect steps out, if there are any.
std::string Server::HowToGoBack(const ShardStatus& state) {
  if (!state.suspect_since.has_value()) return "";
  const std::string since = absl::StrCat(" since step ", state.suspect_since->value());
  const std::string better = incarnation_->durable()->saver().NewestBefore(*state.suspect_since);
  if (better.empty()) return absl::StrCat(since, "; no checkpoint is from before");
  return absl::StrCat(
      since, "; the newest checkpoint from before is ", better,
      ": a server that is started with this directory continues from there if you "
      "remove the later ones",
      incarnation_->durable()->journals() ? " and the files journal-* and kept" : "");
}

std::string Server::ClosingTable() const {
  if (incarnation_ == nullptr) return "";
  const ShardStatus state = shard().Describe();
  const std::string named = named_ == nullptr ? "" : named_->ClosingLines();
  if (OnlyNamedTrain()) return absl::StrCat("Sluice job ", state.job_id, "\n", named);
  return absl::StrCat(
      sluice::ClosingTable(ToProto(state, incarnation_->shard(), incarnation_->durable()),
                           shard().results(), crc_),
      named);
}

}  // namespace sluice
