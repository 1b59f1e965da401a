#include "server/program/launched_server.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/random.h"
#include "common/launch/launch_credentials.h"
#include "common/net/network.h"

namespace sluice {
namespace {

constexpr int kTokenBytes = 32;
// Open MPI kills a rank one second after SIGTERM, and the server's closing table comes after its
// grace. A worker in a long batch uses all of it.
constexpr absl::Duration kGraceUnderMpirun = absl::Milliseconds(500);

bool IsWildcard(const Address& address) {
  return address.host == "0.0.0.0" || address.host == "::";
}

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
  if (place.advertised_host.empty() && !world.one_node && IsWildcard(*place.listen)) {
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

// Gives a server on TCP credentials of this launch, unless the flags choose.
absl::Status MakeCredentials(const SecurityFlags& flags, const Place& place,
                             ServerIdentity* identity) {
  if (!place.listen.has_value()) return CheckPrivateSocketIsPlain(flags);
  if (place.listen->is_unix() || ChoosesSecurity(flags)) return absl::OkStatus();
  std::vector<std::string> hosts = {HostName(), place.listen->host};
  if (!place.advertised_host.empty()) hosts.push_back(place.advertised_host);
  auto made = MakeLaunchCredentials(hosts, absl::Now());
  if (!made.ok()) return made.status();
  identity->ticket.credentials = std::move(made->worker);
  identity->credentials = std::move(made->server);
  return absl::OkStatus();
}

// The server's credentials at that place; an empty source, for plaintext, on a private socket.
absl::StatusOr<CredentialsSource> CredentialsOf(const ServerIdentity& identity,
                                                const SecurityFlags& flags,
                                                const absl::optional<Address>& listen) {
  if (!identity.credentials.key.empty()) return SourceOf(identity.credentials);
  if (!listen.has_value()) return CredentialsSource();
  return CredentialsAt(flags, *listen);
}

// A server that begins a launch.
absl::StatusOr<LaunchedServer> StartAnew(const ServerFlags& flags, const LaunchBrief& brief,
                                         ServerOptions options) {
  const auto place = ChoosePlace(flags, brief.world);
  if (!place.ok()) return place.status();
  if (options.token.empty()) options.token = RandomHex(kTokenBytes);
  LaunchedServer launched;
  const absl::Status made = MakeCredentials(flags.security, *place, &launched.identity);
  if (!made.ok()) return made;
  auto credentials = CredentialsOf(launched.identity, flags.security, place->listen);
  if (!credentials.ok()) return credentials.status();
  options.credentials = *std::move(credentials);
  options.listen = place->listen;
  options.directory = brief.directory;
  auto server = Server::Start(options);
  if (!server.ok()) return server.status();
  launched.server = *std::move(server);
  Address reached_at = launched.server->address();
  launched.identity.listen = reached_at.ToString();
  if (!place->advertised_host.empty()) reached_at.host = place->advertised_host;
  JobTicket& ticket = launched.identity.ticket;
  ticket.address = reached_at.ToString();
  ticket.job_id = launched.server->shard().Describe().job_id;
  ticket.token = options.token;
  return launched;
}

// A server that takes the place of one that died.
absl::StatusOr<LaunchedServer> TakeOver(const ServerFlags& flags, const ServerIdentity& identity,
                                        ServerOptions options) {
  const auto listen = ParseAddress(identity.listen);
  if (!listen.ok()) return listen.status();
  auto credentials = CredentialsOf(identity, flags.security, *listen);
  if (!credentials.ok()) return credentials.status();
  options.listen = *listen;
  options.credentials = *std::move(credentials);
  options.token = identity.ticket.token;
  options.shard.job_id = identity.ticket.job_id;
  options.existing_trace = Existing::kContinued;
  auto server = Server::Start(options);
  if (!server.ok()) return server.status();
  return LaunchedServer{*std::move(server), identity};
}

}  // namespace

absl::StatusOr<LaunchedServer> StartLaunchedServer(const ServerFlags& flags,
                                                   const LaunchBrief& brief) {
  if (brief.world.size < 2) {
    return absl::InvalidArgumentError(
        "rank 0 is the server, and no rank is left to be a worker; start at least 2 ranks");
  }
  auto options = ServerOptionsFrom(flags, static_cast<uint32_t>(brief.world.size - 1));
  if (!options.ok()) return options.status();
  options->grace = kGraceUnderMpirun;
  if (brief.server.has_value()) return TakeOver(flags, *brief.server, *std::move(options));
  return StartAnew(flags, brief, *std::move(options));
}

}  // namespace sluice
