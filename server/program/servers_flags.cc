#include "server/program/servers_flags.h"

#include <CLI/CLI.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/command_line.h"
#include "server/program/optional_flag.h"
#include "server/server_options.h"

namespace sluice {
namespace {

constexpr uint32_t kMostServers = 256;
// A machine has the time to start again, and its server to load the stripe.
constexpr absl::Duration kLeaseWithCheckpoints = absl::Seconds(60);
constexpr char kListExample[] = "--servers=host1:7070,host2:7070";

absl::Status WrongServers(const ServersFlags& flags, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("--servers=", flags.servers, ": ", why));
}

// The address at which a server listens and at which all others reach it.
absl::StatusOr<Address> ListedAddress(const ServersFlags& flags, absl::string_view text) {
  auto address = ParseAddress(text);
  if (!address.ok()) return WrongServers(flags, std::string(address.status().message()));
  if (address->is_unix()) return address;
  if (address->port == 0) {
    return WrongServers(flags, absl::StrCat(address->ToString(),
                                            " means any free port, which the other servers do not "
                                            "know; name the port"));
  }
  if (address->IsWildcard()) {
    return WrongServers(flags, absl::StrCat(address->ToString(),
                                            " means every address of a machine; name the host by "
                                            "which workers and the other servers reach it"));
  }
  return address;
}

absl::StatusOr<ServerList> ParseServerList(const ServersFlags& flags) {
  ServerList list;
  std::set<std::string> seen;
  for (const absl::string_view text : absl::StrSplit(flags.servers, ',')) {
    auto address = ListedAddress(flags, text);
    if (!address.ok()) return address.status();
    if (!seen.insert(address->ToString()).second) {
      return WrongServers(flags, absl::StrCat(address->ToString(), " is there twice"));
    }
    list.addresses.push_back(*std::move(address));
  }
  if (list.size() < 2 || list.size() > kMostServers) {
    return WrongServers(
        flags, absl::StrCat("expected 2 to ", kMostServers, " addresses, found ", list.size(),
                            "; a server that is the only one has --listen in place of it"));
  }
  return list;
}

}  // namespace

void AddServersFlags(CLI::App& group, ServersFlags& flags) {
  group
      .add_option("--servers", flags.servers,
                  "under mpirun: the number of servers, which share the model's parameters: rank 0 "
                  "and, on several nodes, one rank of each node before any has a second one; "
                  "without mpirun: the addresses of all servers of the job, "
                  "host:port,host:port,…, the same list for each of them")
      ->capture_default_str();
  AddOptional(group, "--index", flags.index,
              "which address of --servers is this server's: 0 for the first one, which decides "
              "about the whole job");
  AddOptional(group, "--server-lease", flags.lease,
              "seconds that another server of the job may be away before the job ends (default: 60 "
              "with --checkpoint-dir, since it may be started again; else --lease)")
      ->check(SecondsFrom(kMicrosecond));
}

absl::Duration ServerLease(const ServersFlags& flags, const ServerOptions& options) {
  if (flags.lease.has_value()) return absl::Seconds(*flags.lease);
  return options.durable.directory.empty() ? options.shard.lease : kLeaseWithCheckpoints;
}

absl::StatusOr<uint32_t> LaunchedServers(const ServersFlags& flags) {
  uint32_t servers = 0;
  const bool number = absl::SimpleAtoi(flags.servers, &servers);
  if (!number || servers < 1 || servers > kMostServers) {
    return WrongServers(flags,
                        absl::StrCat("under mpirun it is the number of ranks that serve, 1 to ",
                                     kMostServers, "; they tell each other their addresses"));
  }
  if (flags.index.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--index=", *flags.index,
                     " is for servers that are started by hand; leave it out under "
                     "mpirun, where the rank says which server this is"));
  }
  return servers;
}

absl::StatusOr<ServerList> ListedServers(const ServersFlags& flags, const std::string& listen) {
  if (flags.servers == "1") {
    if (!flags.index.has_value()) return ServerList();
    return absl::InvalidArgumentError(absl::StrCat(
        "--index=", *flags.index, " has no list of servers; give ", kListExample, ", too"));
  }
  if (!absl::StrContains(flags.servers, ':')) {
    return WrongServers(flags, absl::StrCat("without mpirun, expected the addresses of all servers "
                                            "of the job: ",
                                            kListExample, " --index=0"));
  }
  auto list = ParseServerList(flags);
  if (!list.ok()) return list;
  if (!listen.empty()) {
    return absl::InvalidArgumentError(
        "--listen and --servers are given; leave --listen out, since a server listens at its "
        "address in the list of --servers");
  }
  if (!flags.index.has_value() || *flags.index >= list->size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--index=", flags.index.has_value() ? absl::StrCat(*flags.index) : "(absent)",
        ", expected 0 to ", list->size() - 1, ": which address of --servers is this server's"));
  }
  list->index = *flags.index;
  return list;
}

}  // namespace sluice
