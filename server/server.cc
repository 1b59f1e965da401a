#include "server/server.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
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

}  // namespace

Server::Server(ServerOptions options, std::unique_ptr<Trace> trace)
    : options_(std::move(options)),
      step_wait_log_(options_.log_step_wait),
      trace_(std::move(trace)) {}

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
  auto begun = ServerIncarnation::Start(server->options_, server->trace_.get());
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
  if (options_.metrics.has_value()) http_.Add(*options_.metrics, MetricsRoutes());
  if (options_.page.has_value()) {
    page_ = MakePage();
    http_.Add(*options_.page, page_->Routes());
    http_.Add(*options_.page, operator_page_.Routes());
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

std::vector<HttpRoute> Server::MetricsRoutes() {
  HttpRoute route;
  route.path = kMetricsPath;
  route.handle = [this](const HttpRequest&) {
    return HttpText(200, metrics_.Text(), ServerMetrics::kContentType);
  };
  return {route};
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
  const std::vector<SessionRecord> sessions = shard().Sessions();
  return std::none_of(sessions.begin(), sessions.end(),
                      [](const SessionRecord& record) { return record.joined; });
}

bool Server::IsOver() const {
  const ReplicaLoss lost = incarnation_->lost_replica();
  const bool ends = !lost.why.empty() && !lost.is_back && !shard().Describe().end_is_saved;
  return incarnation_->drained() || ends ||
         (options_.exit_when_finished && (incarnation_->deserted() || left_alone_));
}

}  // namespace sluice
