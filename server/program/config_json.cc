#include "server/program/config_json.h"

#include <google/protobuf/util/json_util.h>

#include "common/tensor/layout.h"
#include "common/wire/join.h"
#include "common/wire/messages.h"
#include "server/rpc/access/pull_limits.h"
#include "server/rpc/access/rpc_limits.h"
#include "sluice/v1/config.pb.h"

namespace sluice {
namespace {

v1::ServerLimits LimitsOf(const ServerOptions& options) {
  v1::ServerLimits limits;
  limits.set_message_bytes(RpcLimits::kMessageBytes);
  limits.set_metadata_bytes(RpcLimits::kMetadataBytes);
  limits.set_streams_per_connection(options.limits.streams);
  *limits.mutable_handshake() = ToProto(options.limits.handshake);
  limits.set_connections(static_cast<uint32_t>(options.limits.connections));
  limits.set_connections_per_address(
      static_cast<uint32_t>(options.limits.connections_of_one_address));
  limits.set_parameters(options.shard.max_elements);
  limits.set_tensors(Layout::kMaxRanges);
  limits.set_tensor_name_bytes(Layout::kMaxNameBytes);
  limits.set_dimensions(Layout::kMaxDimensions);
  limits.set_join_bytes(kMaxJoinBytes);
  *limits.mutable_join_time() = ToProto(options.limits.request);
  limits.set_workers(options.shard.max_sessions);
  limits.set_worker_name_bytes(kMaxWorkerName);
  limits.set_bytes_in_flight(options.shard.max_in_flight_bytes);
  limits.set_push_row_bytes(options.shard.most_row_bytes);
  limits.set_table_bytes(options.shard.table_memory.most_bytes);
  limits.set_tables(TableSpec::kMaxTables);
  limits.set_row_width(TableSpec::kMaxWidth);
  *limits.mutable_lease() = ToProto(options.shard.lease);
  limits.set_observers(RpcLimits::kObservers);
  limits.set_observers_pulls(PullLimits::kMostOfObserver);
  return limits;
}

v1::GuardsConfig ToConfig(const Guards& guards) {
  v1::GuardsConfig config;
  config.set_skip_not_finite(guards.skip_not_finite);
  if (guards.clip_norm.has_value()) config.set_clip_norm(*guards.clip_norm);
  if (guards.max_push_norm.has_value()) config.set_max_push_norm(*guards.max_push_norm);
  config.set_on_divergence(std::string(DivergenceActionName(guards.on_divergence)));
  return config;
}

v1::TlsConfig ToConfig(const TlsFiles& files) {
  v1::TlsConfig config;
  config.set_certificate(files.certificate);
  config.set_key(files.key);
  config.set_authority(files.authority);
  return config;
}

v1::CheckpointConfig ToConfig(const DurableOptions& durable) {
  v1::CheckpointConfig config;
  config.set_directory(durable.directory);
  config.set_every(durable.checkpoint_every);
  config.set_keep(durable.keep_checkpoints);
  config.set_journal(durable.durability == Durability::kJournal);
  return config;
}

v1::ServerConfig ConfigOf(const ServerOptions& options, const TlsFiles& tls,
                          const ServerList& list) {
  const ShardOptions& shard = options.shard;
  v1::ServerConfig config;
  if (options.listen.has_value()) config.set_listen(options.listen->ToString());
  config.set_token(!options.token.empty());
  if (!tls.certificate.empty()) *config.mutable_tls() = ToConfig(tls);
  config.set_workers(shard.expected_workers);
  *config.mutable_consistency() = ToProto(shard.consistency);
  *config.mutable_schedule() = ToProto(shard.schedule);
  *config.mutable_guards() = ToConfig(shard.guards);
  if (shard.start_timeout != absl::InfiniteDuration()) {
    *config.mutable_start_timeout() = ToProto(shard.start_timeout);
  }
  config.set_exit_when_finished(options.exit_when_finished);
  *config.mutable_log_step_wait() = ToProto(options.log_step_wait);
  config.set_threads(options.threads);
  config.set_shared_memory(shard.snapshots == SnapshotMemory::kShared);
  config.set_trace(options.trace_file);
  config.set_json_log(options.event_files.json_log);
  config.set_tensorboard(options.event_files.tensorboard);
  if (options.metrics.has_value()) config.set_metrics(options.metrics->address.ToString());
  if (options.page.has_value()) config.set_page(options.page->address.ToString());
  config.set_page_runs(options.page_runs);
  if (!options.durable.directory.empty()) {
    *config.mutable_checkpoints() = ToConfig(options.durable);
  }
  for (const Address& address : list.addresses) config.add_servers(address.ToString());
  config.set_index(list.index);
  *config.mutable_limits() = LimitsOf(options);
  return config;
}

}  // namespace

std::string ConfigJson(const ServerOptions& options, const TlsFiles& tls, const ServerList& list) {
  google::protobuf::util::JsonPrintOptions layout;
  layout.add_whitespace = true;
  layout.always_print_primitive_fields = true;
  layout.preserve_proto_field_names = true;
  std::string json;
  const auto printed =
      google::protobuf::util::MessageToJsonString(ConfigOf(options, tls, list), &json, layout);
  return printed.ok() ? json : printed.ToString() + "\n";
}

}  // namespace sluice
