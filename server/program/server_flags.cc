#include "server/program/server_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/command_line.h"
#include "common/base/random.h"
#include "common/base/thread_pool.h"
#include "common/security/secret_file.h"
#include "server/durable/flags.h"
#include "server/program/config_json.h"
#include "server/program/memory_bytes.h"
#include "server/program/optional_flag.h"
#include "server/web/http/http_server.h"

namespace sluice {
namespace {

constexpr uint32_t kMostThreads = 8;    // more than memory has bandwidth for, unless asked for
constexpr uint64_t kInFlightShare = 4;  // of the memory, if no other share is asked for

// Each element takes nine float32: in two snapshots, in the sum that a journal takes, in an
// optimizer's three slots, and in three gradients that are arriving.
uint64_t ElementsThatMemoryHolds() {
  constexpr uint64_t kVectors = 9;
  return MemoryBytes() / (kVectors * sizeof(float));
}

// `launched_workers` is 0 if the number of workers is unknown.
absl::StatusOr<ShardOptions> ShardOptionsFrom(const ServerFlags& flags, uint32_t launched_workers) {
  ShardOptions options;
  const absl::Status training = ApplyTrainingFlags(flags.training, launched_workers, &options);
  if (!training.ok()) return training;
  options.lease = absl::Seconds(flags.lease);
  if (flags.start_timeout > 0) options.start_timeout = absl::Seconds(flags.start_timeout);
  options.max_sessions = flags.max_workers;
  // A number in the lower half, so that the counter does not overflow.
  options.session_base = SessionId(RandomNonce().value() >> 1);
  options.max_elements = ElementsThatMemoryHolds();
  if (flags.shared_memory) options.snapshots = SnapshotMemory::kShared;
  options.max_in_flight_bytes = flags.max_in_flight_mb.has_value()
                                    ? static_cast<uint64_t>(*flags.max_in_flight_mb * 1e6)
                                    : MemoryBytes() / kInFlightShare;
  options.ample_in_flight = !flags.max_in_flight_mb.has_value();
  options.most_row_bytes = static_cast<uint64_t>(flags.max_push_rows_mb * 1e6);
  options.table_memory.most_bytes = flags.max_table_memory_mb.has_value()
                                        ? static_cast<uint64_t>(*flags.max_table_memory_mb * 1e6)
                                        : MemoryBytes() / 2;
  return options;
}

void AddMemberFlags(CLI::App& group, ServerFlags& flags) {
  group
      .add_option("--lease", flags.lease,
                  "seconds after which a silent or disconnected worker loses its place")
      ->check(SecondsFrom(kMicrosecond))
      ->capture_default_str();
  group
      .add_option("--start-timeout", flags.start_timeout,
                  "seconds to wait for the other workers after the first one joined; then training "
                  "begins without them; 0: no limit")
      ->check(SecondsFrom(0))
      ->capture_default_str();
  group.add_option("--max-workers", flags.max_workers, "workers that may take part at once")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
}

void AddConnectionFlags(CLI::App& group, ServerFlags& flags) {
  group
      .add_option(
          "--max-connections", flags.max_connections,
          "connections that may be open at once; further ones are closed; each takes two of "
          "the files that the process may have open (ulimit -n)")
      ->check(CLI::Range(16, 1'000'000))
      ->capture_default_str();
  group
      .add_option("--max-connections-per-address", flags.max_connections_per_address,
                  "connections that may be open at once from one IP address; 0: half of all")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
}

void AddLimitFlags(CLI::App& group, ServerFlags& flags) {
  AddOptional(
      group, "--max-in-flight", flags.max_in_flight_mb,
      "in-flight limit: MB of gradients that the server receives at once, or has not yet written "
      "to its journal; beyond it workers are slowed down; three gradients always fit (default: 128 "
      "MB or 64 gradients, whichever is more, but at most a quarter of the memory that this "
      "process "
      "may use)")
      ->check(NumberFrom(0, 1e12));
  group
      .add_option("--max-push-rows", flags.max_push_rows_mb,
                  "MB of rows of tables that one push may have: 8 bytes for each id and 4 for each "
                  "element")
      ->check(NumberFrom(0, 1e12))
      ->capture_default_str();
  AddOptional(
      group, "--max-table-memory", flags.max_table_memory_mb,
      "MB of memory for tables on this server, with the optimizer's slots; a push that "
      "would need more is refused, unless there is --table-dir (default: half of the memory "
      "that this process may use)")
      ->check(NumberFrom(0, 1e12));
  group.add_option("--table-dir", flags.table_dir,
                   "folder on a local disk for rows of tables for which --max-table-memory is too "
                   "small; the server leaves nothing there");
  group
      .add_option("--max-streams", flags.max_streams,
                  "calls that may be open at once on one connection; further calls wait")
      ->check(CLI::Range(16, 1'000'000))
      ->capture_default_str();
  group
      .add_option("--handshake-timeout", flags.handshake_timeout,
                  "seconds in which a new connection must complete its handshakes; it must begin "
                  "a call in twice that time")
      ->check(NumberFrom(0.01, 3600))
      ->capture_default_str();
  AddConnectionFlags(group, flags);
}

void AddAddressFlags(CLI::App& group, ServerFlags& flags) {
  AddServersFlags(group, flags.servers);
  group.add_option("--listen", flags.listen,
                   "address to listen on: host:port, [ipv6]:port or unix:/path (default under "
                   "mpirun: a private unix socket on one node, any TCP port on several)");
  group.add_option("--advertise", flags.advertise,
                   "host under which other nodes reach this server");
  group.add_option("--interface", flags.interface,
                   "network interface whose address the server tells other nodes");
  group.add_option("--token-file", flags.token_file,
                   "file whose first line is a secret that workers must present");
  group.add_option("--metrics", flags.metrics,
                   "address on which to serve metrics for Prometheus, at /metrics: host:port or "
                   "[ipv6]:port, beyond loopback with TLS or a token (default: none)");
  AddSecurityFlags(group, flags.security);
  group.add_option(
      "--page", flags.page,
      "address on which to serve a page for browsers that shows the job as it runs, for "
      "example 127.0.0.1:8080; beyond loopback with TLS or a token (default: none)");
  group.add_option("--page-runs", flags.page_runs,
                   "directory whose runs the page lays over this job's: the jobs that had their "
                   "--checkpoint-dir in it (default: none)");
}

// The options of an HTTP listener at the address that `flag` names. `token` is the server's.
absl::StatusOr<HttpOptions> HttpOptionsFrom(const std::string& flag, const std::string& given,
                                            const SecurityFlags& security,
                                            const std::string& token) {
  auto address = ParseAddress(given);
  if (!address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", address.status().message()));
  }
  HttpOptions options;
  options.address = *std::move(address);
  options.token = token;
  if (!options.address.IsLocal()) {  // on loopback plaintext is safe, and needs no certificate
    auto credentials = CredentialsFrom(security);
    if (!credentials.ok()) return credentials.status();
    options.credentials = *std::move(credentials);
  }
  const absl::Status safe = CheckHttpOptions(options, security.insecure_on_network, flag);
  if (!safe.ok()) return safe;
  return options;
}

}  // namespace

void AddServerFlags(CLI::App& app, ServerFlags& flags) {
  AddTrainingFlags(app, flags.training);
  AddDurableFlags(app, flags.durable);
  CLI::App& group = *app.add_option_group("Server", "How the server treats its workers");
  AddMemberFlags(group, flags);
  AddLimitFlags(group, flags);
  AddAddressFlags(group, flags);
  group
      .add_option("--shared-memory", flags.shared_memory,
                  "whether workers of this node push and pull through shared memory: on or off")
      ->default_str("on");
  // sluice_train has a --threads of its own, for LibTorch.
  const bool taken = app.get_option_no_throw("--threads") != nullptr;
  AddOptional(
      group, taken ? "--server-threads" : "--threads", flags.threads,
      "threads that do the arithmetic of a step or of an encoding (default: one for each core, at "
      "most 8)")
      ->check(CLI::Range(1, 1024));
  group
      .add_option("--log-step-wait", flags.log_step_wait,
                  "seconds after which the log names the workers that a step waits for")
      ->check(SecondsFrom(kMicrosecond))
      ->capture_default_str();
  group.add_option("--trace", flags.trace,
                   "file for a trace of where the time goes, which chrome://tracing and "
                   "ui.perfetto.dev show; all ranks of a node may name the same");
  group.add_option("--json-log", flags.event_files.json_log,
                   "file to which each event of the job is appended, as a line of JSON");
  group.add_option("--tensorboard", flags.event_files.tensorboard,
                   "directory for an event file of TensorBoard: loss, learning rate, staleness, "
                   "speed, results");
  group.add_flag("--wait-for-more", flags.wait_for_more,
                 "do not exit when the last worker has left");
  group
      .add_option("--max-restarts", flags.max_restarts,
                  "under mpirun: how often a rank's program is started again after it crashed, was "
                  "killed or failed, before the job ends; a server also needs --checkpoint-dir, "
                  "from which it continues")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
}

void HoldModelInParts(uint32_t servers, ServerOptions* options) {
  const uint64_t all = options->shard.max_elements * servers;
  options->shard.max_elements = std::min<uint64_t>(all, Layout::kMaxElements);
}

absl::StatusOr<ServerOptions> ServerOptionsFrom(const ServerFlags& flags, uint32_t launched_workers,
                                                uint32_t servers) {
  auto shard = ShardOptionsFrom(flags, launched_workers);
  if (!shard.ok()) return shard.status();
  ServerOptions options;
  options.shard = *std::move(shard);
  options.shard.job_id = RandomHex(4);
  options.durable = flags.durable;
  options.durable.servers = servers;
  options.servers = servers;
  options.server_lease = ServerLease(flags.servers, options);
  const bool goes_back = options.shard.guards.on_divergence == DivergenceAction::kRestore;
  if (goes_back && options.durable.directory.empty()) {
    return absl::InvalidArgumentError(
        "--on-divergence=restore needs checkpoints to go back to; give --checkpoint-dir=DIRECTORY "
        "and --checkpoint-every=STEPS");
  }
  if (flags.page.empty() && !flags.page_runs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--page-runs=", flags.page_runs,
                     " needs the page that shows the runs; give --page=ADDRESS"));
  }
  options.files = flags.files;
  options.transforms = flags.transforms;
  options.shard.on_attachments = flags.on_attachments;
  if (servers == 1) options.shard.program_optimizer = flags.program_optimizer;
  options.exit_when_finished = !flags.wait_for_more;
  options.log_step_wait = absl::Seconds(flags.log_step_wait);
  options.table_directory = flags.table_dir;
  options.trace_file = flags.trace;
  options.event_files = flags.event_files;
  options.limits.streams = flags.max_streams;
  options.limits.connections = flags.max_connections;
  options.limits.connections_of_one_address = flags.max_connections_per_address;
  options.limits.handshake = absl::Seconds(flags.handshake_timeout);
  options.threads = flags.threads.value_or(std::min(ThreadPool::UsableCores(), kMostThreads));
  options.memory_limit = MemoryBytes();
  if (!flags.token_file.empty()) {
    auto token = ReadSecretFile(flags.token_file);
    if (!token.ok()) return token.status();
    options.token = *std::move(token);
  }
  if (!flags.metrics.empty()) {
    auto metrics = HttpOptionsFrom("--metrics", flags.metrics, flags.security, options.token);
    if (!metrics.ok()) return metrics.status();
    options.metrics = *std::move(metrics);
  }
  if (!flags.page.empty()) {
    auto page = HttpOptionsFrom("--page", flags.page, flags.security, options.token);
    if (!page.ok()) return page.status();
    options.page = *std::move(page);
    options.page_runs = flags.page_runs;
  }
  return options;
}

ReplicaServerOptions ReplicaOptionsFrom(const ServerOptions& options) {
  ReplicaServerOptions replica;
  replica.servers = options.servers;
  replica.token = options.token;
  replica.limits = options.limits;
  replica.transforms = options.transforms;
  replica.snapshots = options.shard.snapshots;
  replica.threads = options.threads;
  replica.expected_workers = options.shard.expected_workers;
  replica.lease = options.server_lease;
  replica.table_memory = options.shard.table_memory;
  replica.table_directory = options.table_directory;
  replica.checkpoint_directory = options.durable.directory;
  replica.durability = options.durable.durability;
  replica.files = options.files;
  replica.grace = options.grace;
  return replica;
}

namespace {

// The options of a server that was started by hand. Without --listen and --servers it has no
// address.
struct StandaloneOptions {
  ServerOptions server;
  ServerList list;
};

absl::StatusOr<StandaloneOptions> StandaloneOptionsFrom(const ServerFlags& flags) {
  auto list = ListedServers(flags.servers, flags.listen);
  if (!list.ok()) return list.status();
  auto options = ServerOptionsFrom(flags, 0, list->size());
  if (!options.ok()) return options.status();
  if (!list->addresses.empty()) {
    options->listen = list->addresses[list->index];
  } else if (!flags.listen.empty()) {
    auto listen = ParseAddress(flags.listen);
    if (!listen.ok()) return listen.status();
    options->listen = *std::move(listen);
  }
  if (options->listen.has_value()) {
    auto credentials = CredentialsAt(flags.security, *options->listen);
    if (!credentials.ok()) return credentials.status();
    options->credentials = *std::move(credentials);
  }
  HoldModelInParts(list->size(), &*options);
  options->configuration = ConfigJson(*options, flags.security.tls, *list);
  return StandaloneOptions{*std::move(options), *std::move(list)};
}

absl::StatusOr<std::unique_ptr<JobServer>> StartListedReplica(const StandaloneOptions& given,
                                                              const SecurityFlags& security) {
  const Address& first = given.list.addresses[0];
  const auto usable = CredentialsAt(security, first);
  if (!usable.ok()) return usable.status();
  ReplicaServerOptions options = ReplicaOptionsFrom(given.server);
  options.index = given.list.index;
  options.leader = first.ToString();
  options.listen = given.server.listen;
  options.credentials = given.server.credentials;
  auto replica = ReplicaServer::Start(std::move(options));
  if (!replica.ok()) return replica.status();
  return std::make_unique<JobServer>(*std::move(replica), JobServer::Speaker::kEveryServer);
}

}  // namespace

absl::StatusOr<std::string> DescribeConfig(const ServerFlags& flags) {
  const auto options = StandaloneOptionsFrom(flags);
  if (!options.ok()) return options.status();
  return options->server.configuration;
}

absl::StatusOr<std::unique_ptr<JobServer>> StartStandaloneServer(const ServerFlags& flags) {
  auto options = StandaloneOptionsFrom(flags);
  if (!options.ok()) return options.status();
  if (!options->server.listen.has_value()) {
    return absl::InvalidArgumentError(
        "no address to listen on; give --listen=host:port, or launch with mpirun");
  }
  if (options->list.index > 0) return StartListedReplica(*options, flags.security);
  auto server = Server::Start(std::move(options->server));
  if (!server.ok()) return server.status();
  return std::make_unique<JobServer>(*std::move(server));
}

}  // namespace sluice
