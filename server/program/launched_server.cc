#include "server/program/launched_server.h"

#include <glog/logging.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/random.h"
#include "common/launch/launch_credentials.h"
#include "common/launch/launcher.h"
#include "common/launch/rank_note.h"
#include "common/net/network.h"
#include "server/program/config_json.h"
#include "server/program/server_ranks.h"

namespace sluice {
namespace {

constexpr int kTokenBytes = 32;
// Open MPI kills a rank one second after SIGTERM, and the server's closing table comes after its
// grace. A worker in a long batch uses all of it.
constexpr absl::Duration kGraceUnderMpirun = absl::Milliseconds(500);

// Where a launched server listens, and the host name that the other ranks use to reach it.
struct Place {
  absl::optional<Address> listen;  // absent: a private unix socket
  std::string advertised_host;     // empty: that of `listen`
};

// On TCP others need an address that routes to this node.
absl::StatusOr<Place> ChooseTcp(const ServerFlags& flags) {
  Place place = {Address(), flags.advertise};
  place.listen->host = "0.0.0.0";
  if (!flags.advertise.empty()) return place;
  auto host = RoutableHost(flags.interface);
  if (!host.ok()) return host.status();
  if (host->find(':') != std::string::npos) place.listen->host = "::";
  place.advertised_host = *std::move(host);
  return place;
}

absl::StatusOr<Place> ChoosePlace(const ServerFlags& flags, const MpiWorld& world) {
  if (flags.listen.empty()) {
    const bool nobody_elsewhere =
        world.one_node && flags.advertise.empty() && flags.interface.empty();
    return nobody_elsewhere ? Place() : ChooseTcp(flags);
  }
  auto listen = ParseAddress(flags.listen);
  if (!listen.ok()) return listen.status();
  Place place = {*std::move(listen), flags.advertise};
  if (place.advertised_host.empty() && !world.one_node && place.listen->IsWildcard()) {
    auto host = RoutableHost(flags.interface);
    if (!host.ok()) return host.status();
    place.advertised_host = *std::move(host);
  }
  return place;
}

absl::Status CheckPrivateSocketIsPlain(const SecurityFlags& flags) {
  const auto files = CredentialsFrom(flags);
  if (!files.ok()) return files.status();
  if (*files == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "all ranks share this node and meet on a private unix socket, on which there is no TLS; "
      "leave --tls-cert, --tls-key and --tls-ca out, or give --listen=host:port");
}

// Gives servers on TCP credentials of this launch, unless the flags choose.
absl::Status MakeCredentials(const SecurityFlags& flags, const Place& place,
                             std::vector<std::string> hosts, ServerIdentity* identity) {
  if (!place.listen.has_value()) return CheckPrivateSocketIsPlain(flags);
  if (place.listen->is_unix() || ChoosesSecurity(flags)) return absl::OkStatus();
  hosts.push_back(HostName());
  hosts.push_back(place.listen->host);
  if (!place.advertised_host.empty()) hosts.push_back(place.advertised_host);
  auto made = MakeLaunchCredentials(std::move(hosts), absl::Now());
  if (!made.ok()) return made.status();
  identity->ticket.credentials = std::move(made->worker);
  identity->credentials = std::move(made->server);
  return absl::OkStatus();
}

// A server's credentials at that place: those of the launch, if there are any; an empty source, for
// plaintext, on a private socket.
absl::StatusOr<CredentialsSource> CredentialsOf(const Credentials& of_launch,
                                                const SecurityFlags& flags,
                                                const absl::optional<Address>& listen) {
  if (!of_launch.key.empty()) return SourceOf(of_launch);
  if (!listen.has_value()) return CredentialsSource();
  return CredentialsAt(flags, *listen);
}

// Who serves besides this process.
struct OtherServers {
  std::vector<uint32_t> ranks;          // of all servers, rising
  std::vector<std::string> hosts = {};  // of the others
};

// All servers have the same flags. Those that mean one node do not fit servers on several.
absl::Status CheckFitsNodes(const ServerFlags& flags, const std::string& places) {
  const auto listen = ParseAddress(flags.listen);
  const bool one_host = listen.ok() && !listen->is_unix() && !listen->IsWildcard();
  if (!one_host && flags.advertise.empty()) return absl::OkStatus();
  const std::string flag = one_host ? "--listen=" + flags.listen : "--advertise=" + flags.advertise;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " names one node, and the servers are on several: ", places,
                   "; leave it out, and choose their network with --interface"));
}

absl::StatusOr<OtherServers> ChooseOthers(const ServerFlags& flags, const LaunchBrief& brief,
                                          uint32_t servers) {
  const auto decoded = DecodeNotes(brief.notes);
  if (!decoded.ok()) return decoded.status();
  const std::vector<RankNote>& notes = *decoded;
  OtherServers others = {ChooseServerRanks(notes, servers)};
  const absl::Status named = CheckNames(notes, others.ranks);
  if (!named.ok()) return named;
  std::vector<std::string> names;
  std::set<int> nodes;
  for (const uint32_t rank : others.ranks) {
    nodes.insert(notes[rank].node);
    const std::vector<std::string>& hosts = notes[rank].hosts;
    if (rank > 0) others.hosts.insert(others.hosts.end(), hosts.begin(), hosts.end());
    names.push_back(absl::StrCat("rank ", rank, hosts.empty() ? "" : " on " + hosts.front()));
  }
  const std::string places = absl::StrJoin(names, ", ");
  LOG_IF(INFO, servers > 1) << "the servers are " << places;
  if (nodes.size() == 1) return others;
  const absl::Status fits = CheckFitsNodes(flags, places);
  if (!fits.ok()) return fits;
  LOG_IF(WARNING, !flags.durable.directory.empty())
      << "each server saves its part of the checkpoints in " << flags.durable.directory
      << " of its own node, unless the nodes share it";
  return others;
}

// A server that begins a launch.
absl::StatusOr<LaunchedServer> StartAnew(const ServerFlags& flags, const LaunchBrief& brief,
                                         ServerOptions options) {
  auto others = ChooseOthers(flags, brief, options.servers);
  if (!others.ok()) return others.status();
  const auto place = ChoosePlace(flags, brief.world);
  if (!place.ok()) return place.status();
  if (options.token.empty()) options.token = RandomHex(kTokenBytes);
  LaunchedServer launched;
  const absl::Status made =
      MakeCredentials(flags.security, *place, std::move(others->hosts), &launched.identity);
  if (!made.ok()) return made;
  auto credentials = CredentialsOf(launched.identity.credentials, flags.security, place->listen);
  if (!credentials.ok()) return credentials.status();
  options.credentials = *std::move(credentials);
  options.listen = place->listen;
  options.advertised_host = place->advertised_host;
  options.directory = brief.directory;
  options.shard.launched = Launched::kAnew;
  auto server = Server::Start(options);
  if (!server.ok()) return server.status();
  Address reached_at = (*server)->address();
  launched.identity.listen = reached_at.ToString();
  if (!place->advertised_host.empty()) reached_at.host = place->advertised_host;
  JobTicket& ticket = launched.identity.ticket;
  ticket.address = reached_at.ToString();
  ticket.job_id = (*server)->shard().Describe().job_id;
  ticket.token = options.token;
  ticket.server_ranks = std::move(others->ranks);
  launched.server = std::make_unique<JobServer>(*std::move(server));
  return launched;
}

// A server that takes the place of one that died.
absl::StatusOr<LaunchedServer> TakeOver(const ServerFlags& flags, const ServerIdentity& identity,
                                        ServerOptions options) {
  const auto listen = ParseAddress(identity.listen);
  if (!listen.ok()) return listen.status();
  auto credentials = CredentialsOf(identity.credentials, flags.security, *listen);
  if (!credentials.ok()) return credentials.status();
  options.listen = *listen;
  options.credentials = *std::move(credentials);
  options.token = identity.ticket.token;
  options.shard.job_id = identity.ticket.job_id;
  options.existing_trace = Existing::kContinued;
  options.shard.launched = Launched::kAgain;
  auto server = Server::Start(options);
  if (!server.ok()) return server.status();
  return LaunchedServer{std::make_unique<JobServer>(*std::move(server)), identity};
}

absl::Status CheckWorkersAreLeft(const MpiWorld& world, uint32_t servers) {
  if (static_cast<uint32_t>(world.size) > servers) return absl::OkStatus();
  const std::string serving =
      servers == 1 ? "rank 0 is the server"
                   : absl::StrCat(world.size, " ranks were started and ", servers, " are to serve");
  return absl::InvalidArgumentError(absl::StrCat(
      serving, ", and no rank is left to be a worker; start at least ", servers + 1, " ranks"));
}

// A number of workers that mpirun does not launch would be waited for, and have a part of the data.
absl::Status CheckWorkersAreLaunched(const ServerFlags& flags, uint32_t workers) {
  const uint32_t expected = flags.training.workers.value_or(workers);
  if (expected == workers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--workers=", expected, ", but mpirun has launched ", workers,
                   workers == 1 ? " worker" : " workers", "; leave --workers out under mpirun"));
}

// Where a server listens that is not the first one. Its port is any free one, since the servers of
// one node have the same flags.
absl::StatusOr<Place> ChoosePlaceOfReplica(const ServerFlags& flags, const MpiWorld& world,
                                           const JobTicket& ticket) {
  const auto first = ParseAddress(ticket.address);
  if (!first.ok()) return first.status();
  if (first->is_unix()) return Place();
  auto place =
      flags.listen.empty() && !world.one_node ? ChooseTcp(flags) : ChoosePlace(flags, world);
  if (!place.ok()) return place;
  if (!place->listen.has_value()) place->listen = *first;  // all are on one node
  place->listen->port = 0;
  return place;
}

}  // namespace

std::vector<std::string> HostsOfRank(const ServerFlags& flags) {
  std::vector<std::string> hosts = {HostName()};
  if (!flags.advertise.empty()) hosts.push_back(flags.advertise);
  const auto listen = ParseAddress(flags.listen);
  if (listen.ok() && !listen->host.empty()) hosts.push_back(listen->host);
  // A rank without such an address may not need it; if it does, the start of its server says why.
  const auto routable = RoutableHost(flags.interface);
  if (routable.ok()) hosts.push_back(*routable);
  return hosts;
}

absl::StatusOr<LaunchedServer> StartLaunchedServer(const ServerFlags& flags,
                                                   const LaunchBrief& brief) {
  const auto servers = LaunchedServers(flags.servers);
  if (!servers.ok()) return servers.status();
  const absl::Status left = CheckWorkersAreLeft(brief.world, *servers);
  if (!left.ok()) return left;
  const uint32_t workers = static_cast<uint32_t>(brief.world.size) - *servers;
  const absl::Status launched = CheckWorkersAreLaunched(flags, workers);
  if (!launched.ok()) return launched;
  auto options = ServerOptionsFrom(flags, workers, *servers);
  if (!options.ok()) return options.status();
  options->grace = kGraceUnderMpirun;
  if (!brief.world.one_node) HoldModelInParts(*servers, &*options);
  options->configuration = ConfigJson(*options, {}, {});
  const auto launcher = Launcher::Find();
  if (brief.world.one_node && launcher.has_value()) {
    options->is_left_alone = [launcher = *launcher, servers = *servers] {
      const uint32_t running = launcher.Running();
      return running > 0 && running <= servers;
    };
  }
  if (brief.server.has_value()) return TakeOver(flags, *brief.server, *std::move(options));
  return StartAnew(flags, brief, *std::move(options));
}

MpiBlobs BlobsOf(const ServerIdentity& server) {
  MpiBlobs blobs = {EncodeTicket(server.ticket)};
  JobTicket of_replicas = server.ticket;
  of_replicas.credentials = server.credentials;
  blobs.for_chosen = EncodeTicket(of_replicas);
  blobs.chosen.assign(of_replicas.server_ranks.begin() + 1, of_replicas.server_ranks.end());
  return blobs;
}

absl::StatusOr<std::unique_ptr<JobServer>> StartLaunchedReplica(const ServerFlags& flags,
                                                                const LaunchBrief& brief) {
  const MpiWorld& world = brief.world;
  const JobTicket& ticket = brief.server->ticket;
  const auto servers = static_cast<uint32_t>(ticket.server_ranks.size());
  const auto given = ServerOptionsFrom(flags, static_cast<uint32_t>(world.size) - servers, servers);
  if (!given.ok()) return given.status();
  const auto place = ChoosePlaceOfReplica(flags, world, ticket);
  if (!place.ok()) return place.status();
  auto credentials = CredentialsOf(ticket.credentials, flags.security, place->listen);
  if (!credentials.ok()) return credentials.status();
  ReplicaServerOptions options = ReplicaOptionsFrom(*given);
  options.index = *ServerIndex(ticket.server_ranks, world.rank);
  options.leader = ticket.address;
  options.job_id = ticket.job_id;
  options.token = ticket.token;
  options.credentials = *std::move(credentials);
  options.listen = place->listen;
  options.advertised_host = place->advertised_host;
  options.directory = brief.directory;
  options.grace = kGraceUnderMpirun;
  auto replica = ReplicaServer::Start(std::move(options));
  if (!replica.ok()) return replica.status();
  return std::make_unique<JobServer>(*std::move(replica), JobServer::Speaker::kFirstServer);
}

}  // namespace sluice
