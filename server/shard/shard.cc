#include "server/shard/shard.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "common/tensor/stripes.h"

namespace sluice {
namespace {

bool AnyIsSilent(const std::vector<ReplicaLink*>& links) {
  return std::any_of(links.begin(), links.end(),
                     [](const ReplicaLink* link) { return link->silent(); });
}

// The optimizer for the model of the first worker, if it is one of the program's.
absl::StatusOr<std::unique_ptr<ProgramOptimizer>> MakeProgram(const JoinRequest& request,
                                                              const ShardOptions& options) {
  if (!IsOfProgram(request.optimizer.options)) return std::unique_ptr<ProgramOptimizer>();
  const absl::Status fits = CheckFitsServer(request, options);
  if (!fits.ok()) return fits;
  return MakeProgramOptimizer(options, request.layout, request.optimizer);
}

}  // namespace

Shard::Shard(const ShardOptions& options, const Clock& clock, JobListener owner,
             std::unique_ptr<Parallel> parallel, Trace* trace, Executors executors)
    : options_(options),
      store_(options_, job_, steps_, std::move(parallel), trace, std::move(executors)),
      job_(options, clock, std::move(owner),
           [this](const PullRequest& request, const PullHeader& header) {
             job_.mu.AssertHeld();
             job_.others.Release({request.session, request.number}, header);
             return ReleasedPull(header, store_.stripe().latest());
           }),
      steps_(job_, store_),
      states_(job_, store_.stripe(), steps_),
      durability_(options_, job_, store_.mutable_stripe(), steps_) {}

// A task may give tasks to other executors, so all of them are there until none is left.
Shard::~Shard() { store_.executors().Drain(); }

// ---- Membership ----

absl::StatusOr<Welcome> Shard::Join(const JoinRequest& request, JobListener listener) {
  const bool silent = AnyIsSilent(job_.links);
  std::unique_ptr<ProgramOptimizer> program;
  if (request.role == SessionRole::kWorker && layout() == nullptr) {
    auto made = MakeProgram(request, options_);  // it may take long
    if (!made.ok()) return made.status();
    program = *std::move(made);
  }
  absl::StatusOr<Welcome> welcome;
  {
    CompletingLock lock(&job_.mu);
    absl::Status ready = job_.others_checkpoints.CheckLoaded();
    if (ready.ok()) ready = job_.CheckRecovery(Recovery::kDone);
    if (!ready.ok()) return ready;
    const bool ended = job_.parts.roster.ended_before();
    welcome = job_.parts.membership.Join(request, std::move(listener), lock.completions());
    if (welcome.ok() && store_.stripe().layout() == nullptr) {
      steps_.Open(job_.parts.roster.model().layout, *job_.parts.roster.model().optimizer,
                  std::move(program));
      const StalenessRules& rules = job_.parts.settings.rules();
      LOG_IF(INFO, rules.any()) << "rules for stale gradients: " << rules.ToString();
    }
    if (welcome.ok()) job_.others.Open(welcome->session, request);
    // The end that was saved is not that of this launch.
    if (ended && !job_.parts.roster.ended_before()) job_.RequestPeriodicCheckpoint();
    job_.coordinator.Tick(silent, lock.completions());
  }
  steps_.Advance();
  return welcome;
}

absl::StatusOr<Step> Shard::Heartbeat(SessionId session,
                                      const absl::optional<StepMeasurement>& measurement) {
  absl::MutexLock lock(&job_.mu);
  return job_.parts.membership.Heartbeat(session, measurement);
}

void Shard::ConnectionLost(SessionId session) {
  {
    absl::MutexLock lock(&job_.mu);
    job_.parts.roster.MarkLost(session, job_.parts.clock.Now());
  }
  Tick();
}

absl::StatusOr<Step> Shard::Leave(SessionId session, const Farewell& farewell) {
  absl::StatusOr<Step> step;
  {
    CompletingLock lock(&job_.mu);
    step = job_.parts.membership.Leave(session, farewell, lock.completions());
  }
  Tick();
  return step;
}

void Shard::Tick() {
  const bool silent = AnyIsSilent(job_.links);
  {
    CompletingLock lock(&job_.mu);
    job_.coordinator.Tick(silent, lock.completions());
  }
  steps_.Advance();  // without a worker that has gone, the step may be complete
}

// ---- The operator ----

absl::StatusOr<Step> Shard::ChangeSettings(
    absl::FunctionRef<absl::Status(RuntimeSettings&)> propose) {
  Step from;
  {
    absl::MutexLock lock(&job_.mu);
    absl::Status proposed = job_.CheckRecovery(Recovery::kSaves);
    if (proposed.ok()) proposed = propose(job_.parts.settings);
    if (!proposed.ok()) return proposed;
    from = job_.parts.step.NextBoundary();
  }
  steps_.Advance();
  return from;
}

absl::Status Shard::Evict(const std::string& worker) {
  absl::Status evicted;
  {
    CompletingLock lock(&job_.mu);
    evicted = job_.parts.roster.Ban(worker, job_.parts.clock.Now(), lock.completions());
  }
  steps_.Advance();
  return evicted;
}

void Shard::Drain(const absl::Status& why) {
  CompletingLock lock(&job_.mu);
  job_.coordinator.GoDown(why, lock.completions());
}

bool Shard::Suspend(const absl::Status& why) {
  CompletingLock lock(&job_.mu);
  return job_.coordinator.Suspend(why, lock.completions());
}

// ---- State ----

ShardStatus Shard::Describe() const {
  ShardStatus state;
  {
    absl::MutexLock lock(&job_.mu);
    state = job_.coordinator.Describe();
    job_.DescribeOthers(&state);
    state.traffic.bytes_received = job_.bytes_received;
  }
  state.traffic.wire_bytes_received = store_.wire_bytes().received();
  state.traffic.wire_bytes_sent = store_.wire_bytes().sent();
  state.traffic.received_by_transform = store_.wire_bytes().received_by_transform();
  state.traffic.sent_by_transform = store_.wire_bytes().sent_by_transform();
  // The leader's own figures are those of the status.
  state.each_server = servers_ == nullptr ? std::vector<ServerStatus>(state.servers) : servers_();
  ServerStatus& own = state.each_server[0];
  own.connected = true;
  if (state.times.initialized.has_value()) own.figures.step = state.step;
  own.figures.wire_bytes_received = state.traffic.wire_bytes_received;
  own.figures.wire_bytes_sent = state.traffic.wire_bytes_sent;
  own.unchanged = state.uptime;
  const std::shared_ptr<const RowTables> tables = store_.stripe().tables();
  if (tables != nullptr) own.figures.tables = tables->Describe();
  const auto servers = static_cast<uint32_t>(state.each_server.size());
  const Stripes stripes(state.elements, servers);
  for (uint32_t i = 0; i < servers; ++i) state.each_server[i].elements = stripes.SizeOf(i);
  return state;
}

std::vector<SessionRecord> Shard::Sessions() const {
  std::vector<SessionRecord> records;
  absl::MutexLock lock(&job_.mu);
  for (const auto& entry : job_.parts.roster.sessions().records()) {
    records.push_back(entry.second);
  }
  return records;
}

void Shard::ReadSessions(absl::FunctionRef<void(const SessionRecords&)> read) const {
  absl::MutexLock lock(&job_.mu);
  read(job_.parts.roster.sessions().records());
}

Results Shard::results() const {
  absl::MutexLock lock(&job_.mu);
  return job_.parts.membership.results();
}

std::shared_ptr<const Layout> Shard::layout() const {
  absl::MutexLock lock(&job_.mu);
  return job_.parts.roster.model().layout;
}

// ---- The other servers ----

void Shard::Lead(std::vector<ReplicaLink*> links,
                 std::function<std::vector<ServerStatus>()> servers, Pump pump) {
  absl::MutexLock lock(&job_.mu);
  servers_ = std::move(servers);
  job_.links = links;
  job_.pump = std::move(pump);
  job_.others.Lead(std::move(links));
}

void Shard::OnReport(uint32_t replica, const ReplicaReport& report) {
  CompletingLock lock(&job_.mu);
  if (const auto* const have = std::get_if<HaveReport>(&report)) {
    job_.others.OnReport(replica, *have, lock.completions());
  } else if (const auto* const carried = std::get_if<StripeReport>(&report)) {
    job_.carried.Take(replica, *carried);
  } else if (const auto* const loaded = std::get_if<LoadedReport>(&report)) {
    job_.others_checkpoints.OnReport(replica, *loaded);
  } else if (const auto* const saved = std::get_if<SavedReport>(&report)) {
    job_.others_checkpoints.OnReport(replica, *saved);
  } else if (const auto* const summary = std::get_if<SummaryReport>(&report)) {
    job_.summaries.Take(replica, *summary, lock.completions());
  }
}

void Shard::Summarize(const TensorQuery& query, SummaryCallback done) {
  const std::shared_ptr<const Layout> model = layout();
  std::shared_ptr<const Snapshot> current;
  absl::optional<StripedTensor> tensor;
  absl::StatusOr<uint64_t> number = uint64_t{0};
  bool at_once = false;
  {
    absl::MutexLock lock(&job_.mu);
    current = store_.stripe().latest();
    tensor.emplace(*model, Stripes(model->size(), job_.others.replicas()), query);
    at_once = !store_.is_striped() && tensor->elements() <= kPartElements;
    if (!at_once) number = job_.Summarize(query, *tensor, current->step, done);
  }
  if (!number.ok()) return done(number.status());
  if (at_once) {
    return done(SummaryOf(*tensor, current->step, {store_.stripe().Read(query, *current)}));
  }
  store_.executors().summaries->Run([this, number = *number, query, current] {
    const SummaryReport own = {number, store_.stripe().Read(query, *current)};
    CompletingLock lock(&job_.mu);
    job_.summaries.Take(0, own, lock.completions());
  });
}

void Shard::StopWaiting(const absl::Status& why) {
  {
    CompletingLock lock(&job_.mu);
    job_.StopOthers(why, lock.completions());
  }
  steps_.Advance();
}

void Shard::EndReplicas(int exit_code) {
  absl::MutexLock lock(&job_.mu);
  job_.others.End(exit_code);
}

}  // namespace sluice
