#include "server/server_flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/network.h"
#include "common/random.h"
#include "common/secret_file.h"

namespace sluice {
namespace {

constexpr double kLaunchedStartTimeout = 60;  // seconds: all ranks start together
constexpr int kTokenBytes = 32;

template <typename T>
CLI::Option* AddOptional(CLI::App& app, const char* name, absl::optional<T>& value,
                         const char* description) {
  const std::function<void(const T&)> set = [&value](const T& given) { value = given; };
  return app.add_option_function<T>(name, set, description);
}

// Two snapshots, the accumulator, the optimizer's momentum and a gradient on its way in, of float32
// each.
uint64_t ElementsThatMemoryHolds() {
  constexpr uint64_t kVectors = 5;
  const uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return bytes / (kVectors * sizeof(float));
}

// `launched_workers` is 0 if nobody knows.
absl::StatusOr<ShardOptions> ShardOptionsFrom(const ServerFlags& flags, uint32_t launched_workers) {
  ShardOptions options;
  Consistency& consistency = options.consistency;
  const absl::Status mode = ParseConsistencyMode(flags.mode, &consistency.mode);
  if (!mode.ok()) return mode;
  const bool sync = consistency.mode == ConsistencyMode::kSync;
  const uint32_t known =
      launched_workers > 0 ? launched_workers : (sync ? flags.quorum.value_or(1) : 1);
  options.expected_workers = flags.workers.value_or(known);
  consistency.quorum = flags.quorum.value_or(sync ? options.expected_workers : 1);
  consistency.max_staleness = flags.max_staleness;
  if (flags.workers.value_or(1) == 0) {
    return absl::InvalidArgumentError("--workers is 0, expected at least 1");
  }
  const absl::Status valid = consistency.Validate();
  if (!valid.ok()) return valid;
  if (sync) options.expected_workers = consistency.quorum;
  options.lease = absl::Seconds(std::max(flags.lease, 0.0));
  const double wait = launched_workers > 0 ? kLaunchedStartTimeout : 0;
  const double start_timeout = flags.start_timeout.value_or(wait);
  if (start_timeout > 0) options.start_timeout = absl::Seconds(start_timeout);
  options.max_sessions = flags.max_workers;
  options.max_elements = ElementsThatMemoryHolds();
  return options;
}

bool IsWildcard(const Address& address) {
  return address.host == "0.0.0.0" || address.host == "::";
}

// Where to listen, and what to tell others: on TCP they need an address that routes to this node.
absl::Status ChooseTcp(const ServerFlags& flags, Address* listen, std::string* advertised_host) {
  listen->host = "0.0.0.0";
  if (!flags.advertise.empty()) {
    *advertised_host = flags.advertise;
    return absl::OkStatus();
  }
  const auto host = RoutableHost(flags.interface);
  if (!host.ok()) return host.status();
  if (host->find(':') != std::string::npos) listen->host = "::";
  *advertised_host = *host;
  return absl::OkStatus();
}

}  // namespace

void AddServerFlags(CLI::App& app, ServerFlags& flags) {
  CLI::App& group = *app.add_option_group("Server", "How the server treats its workers");
  group.add_option("--mode", flags.mode, "sync (all workers, one gradient each) or async")
      ->capture_default_str();
  AddOptional(group, "--quorum", flags.quorum,
              "sync: workers the first step waits for (default: all that were launched, else 1); "
              "async: gradients per step (default: 1)");
  AddOptional(group, "--max-staleness", flags.max_staleness,
              "async: drop gradients that are more steps old than this (default: never)");
  AddOptional(
      group, "--workers", flags.workers,
      "workers of the job (default: all that were launched; else sync: the quorum, async: 1)");
  group
      .add_option("--lease", flags.lease, "seconds a worker whose connection broke keeps its place")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  AddOptional(group, "--start-timeout", flags.start_timeout,
              "seconds after the first worker joined that the others are waited for; 0 waits for "
              "ever (default: 60 under mpirun, else 0)")
      ->check(CLI::NonNegativeNumber);
  group.add_option("--max-workers", flags.max_workers, "workers that may take part at once")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  group.add_option("--listen", flags.listen,
                   "address to listen on: host:port, [ipv6]:port or unix:/path (default under "
                   "mpirun: a private unix socket on one node, any TCP port on several)");
  group.add_option("--advertise", flags.advertise,
                   "host under which other nodes reach this server");
  group.add_option("--interface", flags.interface,
                   "network interface whose address other nodes are told");
  group.add_option("--token-file", flags.token_file,
                   "file whose first line is a secret that workers must present");
  group.add_flag("--wait-for-more", flags.wait_for_more,
                 "do not exit when the last worker has left");
}

absl::StatusOr<std::unique_ptr<Server>> StartLaunchedServer(const ServerFlags& flags,
                                                            const MpiWorld& world,
                                                            JobTicket* ticket) {
  if (world.size < 2) {
    return absl::InvalidArgumentError(
        "rank 0 is the server, and no rank is left to be a worker; start at least 2 ranks");
  }
  auto shard = ShardOptionsFrom(flags, world.size - 1);
  if (!shard.ok()) return shard.status();
  ServerOptions options;
  options.shard = *shard;
  options.shard.job_id = RandomHex(4);
  options.token = RandomHex(kTokenBytes);
  options.exit_when_finished = !flags.wait_for_more;
  std::string advertised_host;
  if (!flags.listen.empty()) {
    auto listen = ParseAddress(flags.listen);
    if (!listen.ok()) return listen.status();
    options.listen = *listen;
    advertised_host = flags.advertise;
    if (advertised_host.empty() && !world.one_node && IsWildcard(*listen)) {
      auto host = RoutableHost(flags.interface);
      if (!host.ok()) return host.status();
      advertised_host = *std::move(host);
    }
  } else if (!world.one_node || !flags.advertise.empty() || !flags.interface.empty()) {
    const absl::Status chosen = ChooseTcp(flags, &options.listen.emplace(), &advertised_host);
    if (!chosen.ok()) return chosen;
  }
  auto server = Server::Start(options);
  if (!server.ok()) return server.status();
  Address reached_at = (*server)->address();
  if (!advertised_host.empty()) reached_at.host = advertised_host;
  *ticket = {reached_at.ToString(), options.shard.job_id, options.token};
  return server;
}

absl::StatusOr<std::unique_ptr<Server>> StartStandaloneServer(const ServerFlags& flags) {
  if (flags.listen.empty()) {
    return absl::InvalidArgumentError(
        "no address to listen on; give --listen=host:port, or launch with mpirun");
  }
  auto shard = ShardOptionsFrom(flags, 0);
  if (!shard.ok()) return shard.status();
  auto listen = ParseAddress(flags.listen);
  if (!listen.ok()) return listen.status();
  ServerOptions options;
  options.shard = *shard;
  options.shard.job_id = RandomHex(4);
  options.listen = *listen;
  options.exit_when_finished = !flags.wait_for_more;
  if (!flags.token_file.empty()) {
    auto token = ReadSecretFile(flags.token_file);
    if (!token.ok()) return token.status();
    options.token = *token;
  }
  return Server::Start(options);
}

}  // namespace sluice
