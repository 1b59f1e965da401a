#include "server/program/launch.h"

#include <glog/logging.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/launch/failure.h"
#include "common/launch/launch_brief.h"
#include "common/launch/supervisor.h"
#include "common/net/private_directory.h"
#include "common/security/secret.h"
#include "server/program/launched_server.h"

namespace sluice {
namespace {

// Returns whether a restarted program would end with the same code. That is so for wrong usage, for
// a worker whose server is gone, and for a server that has ended (see Server::Serve()).
bool IsFinalCode(int code) { return (code >= 2 && code <= 5) || code == 7; }

std::string RankName(const MpiWorld& world) { return absl::StrCat("rank ", world.rank); }

absl::Status CannotRestart(uint32_t servers) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--max-restarts is given with --servers=", servers,
      ": a server of several cannot be started again, because it has nothing to continue from; "
      "leave one of the flags out"));
}

// Whether this launch can have a supervisor on each rank.
absl::Status CheckRestarts(const ServerFlags& flags, ServerPlace place) {
  if (place == ServerPlace::kElsewhere || flags.max_restarts == 0) return absl::OkStatus();
  const auto servers = LaunchedServers(flags.servers);
  if (!servers.ok()) return servers.status();
  return *servers == 1 ? absl::OkStatus() : CannotRestart(*servers);
}

// ---- A program without a supervisor ----

// Starts the first server, and makes what the other ranks need.
absl::StatusOr<MpiBlobs> StartFirst(const ServerFlags& flags, const MpiWorld& world,
                                    const std::vector<std::string>& hosts, Launch* launch) {
  auto started = StartLaunchedServer(flags, {world}, hosts);
  if (!started.ok()) return started.status();
  launch->server = std::move(started->server);
  const JobTicket& ticket = started->identity.ticket;
  MpiBlobs blobs = {EncodeTicket(ticket)};
  if (ticket.servers == 1) return blobs;
  blobs.for_first = EncodeTicket(started->ticket_of_holders);
  blobs.first = static_cast<int>(ticket.servers);
  return blobs;
}

absl::StatusOr<Launch> TakePartAlone(const ServerFlags& flags, ServerPlace place,
                                     const RankCheck& check) {
  Launch launch;
  auto told = MpiBootstrap(
      place == ServerPlace::kElsewhere ? std::string() : HostsOfRank(flags), check,
      [&](const MpiWorld& world, const std::vector<std::string>& hosts) {
        return place == ServerPlace::kElsewhere ? absl::StatusOr<MpiBlobs>(MpiBlobs())
                                                : StartFirst(flags, world, hosts, &launch);
      });
  if (!told.ok()) return told.status();
  launch.world = told->world;
  if (place == ServerPlace::kElsewhere) return launch;
  const bool is_holder = !told->for_first.empty();
  auto ticket = DecodeTicket(is_holder ? told->for_first : told->blob);
  Wipe(told->for_first);
  Wipe(told->blob);
  if (!ticket.ok()) return ticket.status();
  launch.servers = static_cast<int>(ticket->servers);
  if (is_holder) {
    auto holder = StartLaunchedHolder(flags, launch.world, *ticket);
    if (!holder.ok()) return holder.status();
    launch.server = *std::move(holder);
  }
  launch.ticket = *std::move(ticket);
  return launch;
}

// ---- A supervisor ----

// Runs the server for the first time, so that its ticket can be broadcast.
class SupervisedServer {
 public:
  // What rank 0 broadcasts. If the program could not serve, it has said why.
  absl::StatusOr<std::string> Start(const MpiWorld& world) {
    brief_.world = world;
    const absl::Status started = StartProgram();
    if (!started.ok()) return started;
    auto identity = Hear();
    if (!identity.ok()) return identity.status();
    brief_.server = *std::move(identity);
    return EncodeTicket(brief_.server->ticket);
  }

  // Whether there is a program, on rank 0 after Start().
  bool HasProgram() const { return supervisor_ != nullptr; }

  // Returns the program's last exit code. Only if HasProgram().
  int Run(uint32_t max_restarts) {
    // The other ranks of a launch without a server have given up.
    if (!brief_.server.has_value()) max_restarts = 0;
    return supervisor_->Run(EncodeBrief(brief_), max_restarts, IsFinalCode);
  }

 private:
  absl::Status StartProgram() {
    auto directory = PrivateDirectory::Create();
    if (!directory.ok()) return directory.status();
    directory_ = *std::move(directory);
    brief_.directory = directory_->path();
    auto supervisor = Supervisor::Start(RankName(brief_.world));
    if (!supervisor.ok()) return supervisor.status();
    supervisor_ = *std::move(supervisor);
    return supervisor_->socket().Send(EncodeBrief(brief_));
  }

  absl::StatusOr<ServerIdentity> Hear() {
    auto heard = supervisor_->socket().Receive();
    if (!heard.ok()) return heard.status();
    auto identity = DecodeIdentity(*heard);
    Wipe(*heard);
    return identity;
  }

  LaunchBrief brief_;
  std::unique_ptr<PrivateDirectory> directory_;  // outlives every server
  std::unique_ptr<Supervisor> supervisor_;
};

absl::StatusOr<int> SuperviseWorker(const ServerFlags& flags, const LaunchBrief& brief) {
  auto supervisor = Supervisor::Start(RankName(brief.world));
  if (!supervisor.ok()) return supervisor.status();
  const std::string encoded = EncodeBrief(brief);
  const absl::Status briefed = (*supervisor)->socket().Send(encoded);
  if (!briefed.ok()) return briefed;
  return (*supervisor)->Run(encoded, flags.max_restarts, IsFinalCode);
}

uint32_t RestartsOfServer(const ServerFlags& flags) {
  if (!flags.durable.directory.empty()) return flags.max_restarts;
  LOG(WARNING) << "the server is not started again if it dies, because without --checkpoint-dir "
                  "it has nothing to continue from";
  return 0;
}

// Returns the exit code of this rank's program.
absl::StatusOr<int> Supervise(const ServerFlags& flags, ServerPlace place, const RankCheck& check) {
  SupervisedServer server;
  auto told = MpiBootstrap(check, [&](const MpiWorld& world) -> absl::StatusOr<std::string> {
    return place == ServerPlace::kElsewhere ? std::string() : server.Start(world);
  });
  if (server.HasProgram()) {
    if (told.ok()) Wipe(told->blob);
    return server.Run(RestartsOfServer(flags));
  }
  if (!told.ok()) return told.status();
  LaunchBrief brief = {told->world};
  if (place == ServerPlace::kFirstRanks) {
    auto ticket = DecodeTicket(told->blob);
    Wipe(told->blob);
    if (!ticket.ok()) return ticket.status();
    const bool serves = brief.world.rank < static_cast<int>(ticket->servers);
    if (serves) return CannotRestart(ticket->servers);
    brief.server = ServerIdentity{*std::move(ticket)};
  }
  return SuperviseWorker(flags, brief);
}

// ---- A program with a supervisor ----

absl::StatusOr<Launch> TakePartSupervised(const ServerFlags& flags, ServerPlace place,
                                          const RankCheck& check, const SupervisorSocket& socket) {
  auto told = socket.Receive();
  if (!told.ok()) return told.status();
  const auto brief = DecodeBrief(*told);
  Wipe(*told);
  if (!brief.ok()) return brief.status();
  const absl::Status able = check(brief->world);
  if (!able.ok()) return able;
  Launch launch;
  launch.world = brief->world;
  if (place == ServerPlace::kElsewhere) return launch;
  if (launch.world.rank > 0) {
    launch.ticket = brief->server->ticket;
    launch.servers = static_cast<int>(launch.ticket.servers);
    return launch;
  }
  auto started = StartLaunchedServer(flags, *brief);
  if (!brief->server.has_value()) {
    const absl::Status told_back = socket.Send(EncodeIdentity(
        started.ok() ? absl::StatusOr<ServerIdentity>(started->identity) : started.status()));
    if (!told_back.ok()) return told_back;
  }
  if (!started.ok()) {
    return brief->server.has_value() ? started.status() : SaidForAllRanks(started.status());
  }
  launch.ticket = started->identity.ticket;
  launch.servers = static_cast<int>(launch.ticket.servers);
  launch.server = std::move(started->server);
  return launch;
}

}  // namespace

absl::StatusOr<Launch> TakePartInLaunch(const ServerFlags& flags, ServerPlace place,
                                        const RankCheck& check) {
  const auto supervised = SupervisorSocket::Inherited();
  if (supervised.has_value()) return TakePartSupervised(flags, place, check, *supervised);
  if (flags.max_restarts == 0) return TakePartAlone(flags, place, check);
  const absl::Status restarts = CheckRestarts(flags, place);
  if (!restarts.ok()) return ShareFailure(restarts);
  const auto code = Supervise(flags, place, check);
  if (!code.ok()) return code.status();
  exit(*code);
}

absl::Status CheckStartedByHand(const ServerFlags& flags) {
  if (flags.max_restarts == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--max-restarts is for programs that mpirun launches; leave it out, and let the system's "
      "service manager restart what is started by hand");
}

}  // namespace sluice
