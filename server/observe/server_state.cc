#include "server/observe/server_state.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/version.h"
#include "common/wire/encoding.h"
#include "common/wire/messages.h"
#include "common/wire/versions.h"
#include "common/wire/words.h"
#include "server/observe/verdict.h"

namespace sluice {
namespace {

constexpr Word<Phase, v1::ServerPhase> kPhases[] = {
    {Phase::kWaitingForWorkers, v1::WAITING_FOR_WORKERS},
    {Phase::kTraining, v1::TRAINING},
    {Phase::kFinished, v1::FINISHED},
    {Phase::kDraining, v1::DRAINING}};
constexpr Word<Presence, v1::WorkerPresence> kPresences[] = {{Presence::kPresent, v1::PRESENT},
                                                             {Presence::kLost, v1::LOST},
                                                             {Presence::kLeft, v1::LEFT},
                                                             {Presence::kEvicted, v1::EVICTED}};
constexpr Word<WarningKind, v1::WarningKind> kWarnings[] = {
    {WarningKind::kNotFinite, v1::NOT_FINITE},
    {WarningKind::kParametersGrow, v1::PARAMETERS_GROW},
    {WarningKind::kLossRises, v1::LOSS_RISES},
    {WarningKind::kDoesNotLearn, v1::DOES_NOT_LEARN},
    {WarningKind::kWorkersLost, v1::WORKERS_LOST},
    {WarningKind::kGradientsDropped, v1::GRADIENTS_DROPPED},
    {WarningKind::kWentBack, v1::WENT_BACK},
    {WarningKind::kWorkersLate, v1::WORKERS_LATE},
    {WarningKind::kTooFewWorkers, v1::TOO_FEW_WORKERS}};

v1::PushCounters CountersToProto(const PushCounters& counters) {
  v1::PushCounters message;
  message.set_received(counters.received);
  message.set_accepted(counters.accepted);
  message.set_stale(counters.stale);
  message.set_skipped(counters.skipped);
  message.set_duplicate(counters.duplicate);
  message.set_rejected(counters.rejected);
  message.set_aborted(counters.aborted);
  message.set_in_progress(counters.in_progress);
  return message;
}

v1::StepState StepToProto(const StepState& step, absl::Time now) {
  v1::StepState message;
  message.set_accumulated(step.accumulated);
  message.set_skipped(step.skipped);
  message.set_required(step.required);
  if (step.since.has_value()) *message.mutable_waiting() = ToProto(now - *step.since);
  for (const std::string& name : step.contributed) message.add_contributed(name);
  message.set_missing(step.missing);
  message.set_absent(step.absent);
  for (const AwaitedWorker& worker : step.awaited) {
    v1::AwaitedWorker& awaited = *message.add_awaited();
    awaited.set_worker(worker.worker);
    *awaited.mutable_since_last_seen() = ToProto(worker.since_last_seen);
    awaited.set_lag(worker.lag);
    awaited.set_bytes_arrived(worker.bytes_arrived);
  }
  message.set_stalled_workers(step.stalled_workers);
  for (const StalledWorker& worker : step.stalled) {
    v1::StalledWorker& stalled = *message.add_stalled();
    stalled.set_worker(worker.worker);
    *stalled.mutable_since_last_push() = ToProto(worker.since_last_push);
    *stalled.mutable_usual() = ToProto(worker.usual);
  }
  return message;
}

v1::Staleness StalenessToProto(const StalenessHistogram& staleness) {
  v1::Staleness message;
  message.set_mean(staleness.mean());
  message.set_max(staleness.max());
  message.set_gradients(staleness.total());
  message.set_sum(staleness.sum());
  for (size_t i = 0; i < staleness.counts().size(); ++i) {
    if (staleness.counts()[i] == 0) continue;
    v1::StalenessCount& count = *message.add_histogram();
    count.set_staleness(static_cast<uint32_t>(i));
    count.set_count(staleness.counts()[i]);
  }
  return message;
}

constexpr size_t kGroups = 16;  // that are shown

SharedOptions FirstGroups(const SharedOptions& changed) {
  if (changed == nullptr || changed->groups().size() <= kGroups) return changed;
  const auto begin = changed->groups().begin();
  return ShareOptions({begin, std::next(begin, kGroups)});
}

// The first groups, with their first names.
v1::OptimizerConfig OptimizerToProto(const OptimizerConfig& config) {
  constexpr size_t kNames = 8;
  OptimizerConfig shown = {config.options};
  for (size_t i = 0; i < std::min(config.groups.size(), kGroups); ++i) {
    const OptimizerGroup& group = config.groups[i];
    const auto begin = group.parameters.begin();
    const auto names = static_cast<int64_t>(std::min(group.parameters.size(), kNames));
    shown.groups.push_back({{begin, begin + names}, group.options});
  }
  v1::OptimizerConfig message = ToProto(shown);
  for (int i = 0; i < message.groups_size(); ++i) {
    const size_t size = config.groups[static_cast<size_t>(i)].parameters.size();
    message.mutable_groups(i)->set_size(static_cast<uint32_t>(size));
  }
  message.set_group_count(static_cast<uint32_t>(config.groups.size()));
  return message;
}

v1::StalenessRules RulesToProto(const StalenessRules& rules) {
  v1::StalenessRules message;
  message.set_discount_stale(rules.discount_stale);
  message.set_gap_aware(rules.gap_aware);
  message.set_ordered_momentum(rules.ordered_momentum);
  message.set_divided_momentum(rules.divided_momentum);
  message.set_reason(rules.reason);
  return message;
}

v1::TrainingWarning WarningToProto(const TrainingWarning& warning) {
  v1::TrainingWarning message;
  message.set_kind(ToTheirs(kWarnings, warning.kind));
  message.set_since(warning.since.value());
  if (warning.over.has_value()) message.set_over(warning.over->value());
  message.set_text(warning.text);
  return message;
}

v1::InFlight InFlightToProto(const InFlightStatus& in_flight) {
  v1::InFlight message;
  message.set_bytes(in_flight.bytes);
  message.set_limit(in_flight.limit);
  message.set_waiting(in_flight.waiting);
  return message;
}

v1::WorkerCounts CountsToProto(const ShardStatus& state) {
  const WorkerCounts& workers = state.worker_counts;
  v1::WorkerCounts message;
  message.set_connected(workers.connected);
  message.set_lost(workers.open - workers.connected);
  message.set_evicted(workers.evicted);
  message.set_left(state.ended_before ? std::max(state.gone.left, 1u) : state.gone.left);
  message.set_away(state.gone.away);
  message.set_most(state.most_workers);
  return message;
}

void PutEncoded(const BytesByTransform& bytes,
                google::protobuf::RepeatedPtrField<v1::EncodedBytes>* message) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i].wire == 0) continue;
    v1::EncodedBytes& used = *message->Add();
    used.set_encoding(kTransformNames[i]);
    used.set_tensor_bytes(bytes[i].tensor);
    used.set_wire_bytes(bytes[i].wire);
  }
}

void PutTraffic(const TrafficCounters& traffic, v1::ServerState* message) {
  message->set_bytes_received(traffic.bytes_received);
  message->set_bytes_sent(traffic.bytes_sent);
  message->set_wire_bytes_received(traffic.wire_bytes_received);
  message->set_wire_bytes_sent(traffic.wire_bytes_sent);
  PutEncoded(traffic.received_by_transform, message->mutable_received_by_encoding());
  PutEncoded(traffic.sent_by_transform, message->mutable_sent_by_encoding());
}

void PutTimes(const ShardStatus& state, v1::ServerState* message) {
  *message->mutable_started() = ToProto(state.created);
  *message->mutable_uptime() = ToProto(state.uptime);
  *message->mutable_running() = ToProto(state.now - state.created);
  *message->mutable_longest_wait() = ToProto(state.times.longest_wait);
  if (state.times.initialized.has_value()) {
    *message->mutable_since_initialized() = ToProto(state.now - *state.times.initialized);
  }
  if (state.times.last_step.has_value()) {
    *message->mutable_mean_step_time() = ToProto(state.MeanStepTime());
    *message->mutable_since_last_step() = ToProto(state.now - *state.times.last_step);
  }
}

v1::LastMeasurement MeasuredToProto(const MeasurementStatus& measured) {
  v1::LastMeasurement message;
  message.set_step(measured.latest.step.value());
  message.mutable_results()->insert(measured.latest.results.begin(), measured.latest.results.end());
  message.set_reports(measured.count);
  return message;
}

// What the job waits for this server to do.
std::string AwaitedOf(const ServerStatus& server, bool has_order, Step step) {
  if (!server.connected) {
    return server.unchanged.has_value() ? "to connect again to the first server" : "to come";
  }
  return !has_order ? "" : absl::StrCat("to carry out an order of step ", step.Next().value());
}

v1::TableState TableToProto(const TableSpec& table, const OptimizerOptions& optimizer,
                            const TableStatus& all) {
  v1::TableState message;
  *message.mutable_table() = ToProto(table);
  message.set_optimizer(std::string(OptimizerName(optimizer)));
  message.set_rows(all.rows);
  message.set_rows_on_disk(all.on_disk);
  message.set_waiting(all.waiting);
  message.set_bytes(all.bytes);
  message.set_dropped(all.dropped);
  message.set_removed(all.removed);
  message.set_reads(all.reads);
  message.set_hits(all.hits);
  message.set_mean_age(all.mean_age());
  for (const HotRow& row : all.hottest) {
    v1::HotRow& shown = *message.add_hottest();
    shown.set_id(row.id);
    shown.set_reads(row.reads);
  }
  return message;
}

}  // namespace

v1::ServerState ToProto(const ShardStatus& state) {
  v1::ServerState message;
  message.set_protocol(kServedRevisions.newest);
  message.set_version(kVersion);
  message.set_job_id(state.job_id);
  message.set_incarnation(state.incarnation.value());
  message.set_phase(ToTheirs(kPhases, state.phase));
  message.set_step(state.step.value());
  *message.mutable_consistency() = ToProto(state.consistency);
  if (state.optimizer != nullptr) {
    *message.mutable_optimizer() = OptimizerToProto(*state.optimizer);
    *message.mutable_staleness_rules() = RulesToProto(state.staleness_rules);
  }
  message.set_workers(state.workers);
  message.set_expected_workers(state.expected_workers);
  *message.mutable_worker_counts() = CountsToProto(state);
  message.set_observers(state.observers);
  *message.mutable_current() = StepToProto(state.current, state.now);
  PutChanged(FirstGroups(state.changed), message.mutable_changed_options());
  message.set_learning_rate(state.learning_rate);
  message.set_base_learning_rate(state.base_learning_rate);
  *message.mutable_schedule() = ToProto(state.schedule);
  *message.mutable_staleness() = StalenessToProto(state.staleness);
  *message.mutable_pushes() = CountersToProto(state.counters);
  message.set_tensors(state.tensors);
  message.set_elements(state.elements);
  PutTraffic(state.traffic, &message);
  message.set_waiting_pulls(state.waiting_pulls);
  *message.mutable_in_flight() = InFlightToProto(state.in_flight);
  message.set_lost_steps(state.lost_steps);
  message.set_journal_stopped(state.journal_stopped);
  message.set_diverged(state.diverged);
  for (const TrainingWarning& warning : state.warnings) {
    *message.add_warnings() = WarningToProto(warning);
  }
  message.set_servers(state.servers);
  if (state.awaited_holder.has_value()) {
    message.mutable_awaited_server()->set_index(state.awaited_holder->server);
    *message.mutable_awaited_server()->mutable_since() =
        ToProto(state.now - state.awaited_holder->since);
  }
  if (state.measured.count > 0) *message.mutable_measurement() = MeasuredToProto(state.measured);
  if (state.loss.has_value()) message.set_loss(*state.loss);
  message.set_samples(state.samples);
  message.set_steps_made(state.times.steps);
  PutTimes(state, &message);
  *message.mutable_verdict() = VerdictOn(message);
  return message;
}

v1::ServerState ToProto(const ShardStatus& state, Shard& shard, const DurableDirectory* durable) {
  v1::ServerState message = ToProto(state);
  for (const auto& [name, tasks] : shard.store().executors().Tasks()) {
    (*message.mutable_tasks())[name] = static_cast<uint32_t>(tasks);
  }
  if (durable == nullptr) return message;
  message.set_checkpoint_every(durable->checkpoint_every());
  const auto saved = durable->saver().last_saved();
  if (!saved.has_value()) return message;
  message.mutable_last_checkpoint()->set_step(saved->step.value());
  *message.mutable_last_checkpoint()->mutable_since() = ToProto(RealClock().Now() - saved->at);
  return message;
}

// What other servers say of it is up to a second old.
std::set<SessionId> PullingFrom(Shard& shard, const ShardStatus& state) {
  std::set<SessionId> pulling = shard.store().active_pulls().Sessions();
  for (const ServerStatus& server : state.each_server) {
    if (!server.connected) continue;
    pulling.insert(server.figures.pulling.begin(), server.figures.pulling.end());
  }
  return pulling;
}

v1::Worker ToProto(const SessionRecord& record, const ShardStatus& state,
                   const std::set<SessionId>& pulling) {
  v1::Worker message;
  message.set_worker(record.worker);
  message.set_presence(ToTheirs(kPresences, record.presence));
  message.set_host(record.host);
  message.set_pid(record.pid);
  message.set_push_encoding(record.push_encoding);
  message.set_pull_encoding(record.pull_encoding);
  message.set_version(record.version);
  for (const auto& [type, size] : record.attachments) {
    v1::AttachmentSize& attachment = *message.add_attachments();
    attachment.set_type(type);
    attachment.set_bytes(static_cast<uint32_t>(size));
  }
  const EncodingReport& chosen = record.encodings;
  if (!chosen.push.encoding.empty()) *message.mutable_chosen_push() = ToProto(chosen.push);
  if (!chosen.pull.encoding.empty()) *message.mutable_chosen_pull() = ToProto(chosen.pull);
  message.set_last_sequence(record.last_sequence.value());
  message.set_accepted(record.accepted);
  message.set_stale(record.stale);
  message.set_skipped(record.skipped);
  message.set_index(record.index);
  message.set_joined(record.joined);
  message.set_pulling(pulling.count(record.session) > 0);
  message.set_stalled(state.current.stalled_workers > 0 && record.HasStalled(state.now));
  message.set_lag(state.step.value() - std::min(state.step, record.last_gradient_step).value());
  message.set_contributed(record.contributed == state.step);
  *message.mutable_since_last_seen() = ToProto(state.now - record.last_seen);
  if (record.last_push == absl::InfinitePast()) return message;
  message.set_step(record.last_gradient_step.value());
  message.set_loss(record.loss);
  *message.mutable_since_last_push() = ToProto(state.now - record.last_push);
  return message;
}

std::vector<v1::Server> ServersToProto(const ShardStatus& state) {
  std::vector<v1::Server> servers(state.each_server.size());
  for (size_t i = 0; i < servers.size(); ++i) {
    const ServerStatus& server = state.each_server[i];
    v1::Server& shown = servers[i];
    shown.set_index(static_cast<uint32_t>(i));
    shown.set_address(server.address);
    shown.set_elements(server.elements);
    shown.set_bytes(server.elements * sizeof(float));
    if (server.figures.step.has_value()) shown.set_step(server.figures.step->value());
    shown.set_connected(server.connected);
    if (server.unchanged.has_value()) *shown.mutable_since() = ToProto(*server.unchanged);
    shown.set_wire_bytes_received(server.figures.wire_bytes_received);
    shown.set_wire_bytes_sent(server.figures.wire_bytes_sent);
    const absl::optional<AwaitedHolder>& order = state.awaited_holder;
    const bool has_order = order.has_value() && order->server == i;
    shown.set_awaited(AwaitedOf(server, has_order, state.step));
    auto since = server.connected ? absl::nullopt : server.unchanged;
    if (server.connected && has_order) since = state.now - order->since;
    if (since.has_value()) *shown.mutable_awaited_since() = ToProto(*since);
  }
  return servers;
}

std::vector<v1::TableState> TablesToProto(const ShardStatus& state) {
  const std::vector<TableStatus> totals = state.table_totals();
  std::vector<v1::TableState> tables;
  for (size_t i = 0; i < totals.size(); ++i) {
    const TableSpec& table = state.layout->tables()[i];
    tables.push_back(TableToProto(table, OptionsFor(*state.optimizer, table.name), totals[i]));
  }
  return tables;
}

}  // namespace sluice
