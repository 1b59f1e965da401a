#include "server/program/launch.h"

#include <glog/logging.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/launch/failure.h"
#include "common/launch/launch_brief.h"
#include "common/launch/launcher.h"
#include "common/launch/rank_note.h"
#include "common/launch/supervisor.h"
#include "common/net/private_directory.h"
#include "common/security/secret.h"
#include "server/program/launched_server.h"
#include "server/program/server_ranks.h"

namespace sluice {
namespace {

// Returns whether a restarted program would end with the same code. That is so for wrong usage, for
// a worker whose server is gone, and for a server that has ended (see Server::Serve()).
bool IsFinalCode(int code) { return (code >= 2 && code <= 5) || code == 7 || code == 8; }

std::string RankName(const MpiWorld& world) { return absl::StrCat("rank ", world.rank); }

// What this rank brings to the launch.
struct RankPart {
  const ServerFlags& flags;
  ServerPlace place;
  const std::string& name;
  const RankCheck& check;
};

NoteMaker NoteOf(const RankPart& rank) {
  return [&rank](const MpiWorld& world) {
    RankNote note = {world.node, rank.place == ServerPlace::kThisRank, {}, rank.name};
    if (rank.place != ServerPlace::kElsewhere) note.hosts = HostsOfRank(rank.flags);
    return EncodeNote(note);
  };
}

// Of a launch whose server runs elsewhere: there is nothing to tell.
absl::StatusOr<MpiBlobs> CheckAllWork(const std::vector<std::string>& notes) {
  const auto decoded = DecodeNotes(notes);
  absl::Status sound = decoded.status();
  if (sound.ok()) sound = CheckNames(*decoded, {});
  if (!sound.ok()) return sound;
  return MpiBlobs();
}

// What this rank was told: of the rank of a server, the servers' credentials are part of it.
absl::StatusOr<JobTicket> TicketOf(MpiBootstrapResult& told) {
  auto ticket = DecodeTicket(told.for_chosen.empty() ? told.blob : told.for_chosen);
  Wipe(told.for_chosen);
  Wipe(told.blob);
  return ticket;
}

// ---- A program without a supervisor ----

// Starts the first server, and makes what the other ranks need.
absl::StatusOr<MpiBlobs> StartFirst(const ServerFlags& flags, const MpiWorld& world,
                                    const std::vector<std::string>& notes, Launch* launch) {
  LaunchBrief brief = {world};
  brief.notes = notes;
  auto started = StartLaunchedServer(flags, brief);
  if (!started.ok()) return started.status();
  launch->server = std::move(started->server);
  return BlobsOf(started->identity);
}

absl::StatusOr<Launch> TakePartAlone(const RankPart& rank) {
  Launch launch;
  auto told = MpiBootstrap(NoteOf(rank), rank.check,
                           [&](const MpiWorld& world, const std::vector<std::string>& notes) {
                             return rank.place == ServerPlace::kElsewhere
                                        ? CheckAllWork(notes)
                                        : StartFirst(rank.flags, world, notes, &launch);
                           });
  if (!told.ok()) return told.status();
  launch.world = told->world;
  if (rank.place == ServerPlace::kElsewhere) return launch;
  const bool is_replica = !told->for_chosen.empty();
  auto ticket = TicketOf(*told);
  if (!ticket.ok()) return ticket.status();
  launch.server_ranks = ticket->server_ranks;
  if (is_replica) {
    LaunchBrief brief = {launch.world};
    brief.server = ServerIdentity{*ticket};
    auto replica = StartLaunchedReplica(rank.flags, brief);
    if (!replica.ok()) return replica.status();
    launch.server = *std::move(replica);
  }
  launch.ticket = *std::move(ticket);
  return launch;
}

// ---- A supervisor ----

// Runs the server for the first time, so that its ticket can be broadcast.
class SupervisedServer {
 public:
  explicit SupervisedServer(uint32_t max_restarts) : max_restarts_(max_restarts) {}

  // What rank 0 broadcasts. A program that is killed before it serves is started again. If it could
  // not serve, it has said why.
  absl::StatusOr<MpiBlobs> Start(const MpiWorld& world, const std::vector<std::string>& notes) {
    brief_.world = world;
    brief_.notes = notes;
    const absl::Status started = StartProgram();
    if (!started.ok()) return started;
    auto heard = supervisor_->socket().Receive();
    while (!heard.ok()) {
      ended_ = supervisor_->AwaitEnd(EncodeBrief(brief_), max_restarts_, IsFinalCode);
      if (ended_.has_value()) return heard.status();
      heard = supervisor_->socket().Receive();
    }
    auto identity = DecodeIdentity(*heard);
    Wipe(*heard);
    if (!identity.ok()) return identity.status();
    brief_.server = *std::move(identity);
    return BlobsOf(*brief_.server);
  }

  // Whether there is a program, on rank 0 after Start().
  bool HasProgram() const { return supervisor_ != nullptr; }

  // Returns the program's last exit code. Only if HasProgram().
  int Run(uint32_t max_restarts) {
    if (ended_.has_value()) return *ended_;
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

  const uint32_t max_restarts_;
  LaunchBrief brief_;
  absl::optional<int> ended_;  // the code of a program that was killed before it served
  std::unique_ptr<PrivateDirectory> directory_;  // outlives every server
  std::unique_ptr<Supervisor> supervisor_;
};

// A worker, or a server that is not the first one.
absl::StatusOr<int> SuperviseProgram(const LaunchBrief& brief, uint32_t max_restarts) {
  auto supervisor = Supervisor::Start(RankName(brief.world));
  if (!supervisor.ok()) return supervisor.status();
  const std::string encoded = EncodeBrief(brief);
  const absl::Status briefed = (*supervisor)->socket().Send(encoded);
  if (!briefed.ok()) return briefed;
  return (*supervisor)->Run(encoded, max_restarts, IsFinalCode);
}

uint32_t RestartsOfServer(const ServerFlags& flags) {
  if (!flags.durable.directory.empty()) return flags.max_restarts;
  LOG(WARNING) << "the server is not started again if it dies, because without --checkpoint-dir "
                  "it has nothing to continue from";
  return 0;
}

// A restarted program would initialise MPI as a rank that MPI knows as dead.
absl::Status RestartNeedsMpi() {
  return absl::InvalidArgumentError(
      "--max-restarts starts a rank's program again, which MPI does not allow, and this program "
      "has initialized MPI before it started the job; leave one of them out");
}

// Returns the exit code of this rank's program.
absl::StatusOr<int> Supervise(const RankPart& rank) {
  const ServerFlags& flags = rank.flags;
  SupervisedServer server(flags.max_restarts);
  auto told = MpiBootstrap(
      NoteOf(rank), rank.check, [&](const MpiWorld& world, const std::vector<std::string>& notes) {
        return rank.place == ServerPlace::kElsewhere ? CheckAllWork(notes)
                                                     : server.Start(world, notes);
      });
  if (server.HasProgram()) {
    if (told.ok()) Wipe(told->blob);
    return server.Run(RestartsOfServer(flags));
  }
  if (!told.ok()) return told.status();
  LaunchBrief brief = {told->world};
  if (rank.place == ServerPlace::kElsewhere) return SuperviseProgram(brief, flags.max_restarts);
  const bool is_replica = !told->for_chosen.empty();
  auto ticket = TicketOf(*told);
  if (!ticket.ok()) return ticket.status();
  brief.server = ServerIdentity{*std::move(ticket)};
  if (!is_replica) return SuperviseProgram(brief, flags.max_restarts);
  const auto directory = PrivateDirectory::Create();  // outlives every server of this rank
  if (!directory.ok()) return directory.status();
  brief.directory = (*directory)->path();
  return SuperviseProgram(brief, RestartsOfServer(flags));
}

// ---- A program with a supervisor ----

// Of a program that may have been started again when the first server, on this node, has ended.
LaunchCheck CheckOfServers(const MpiWorld& world, std::shared_ptr<const SupervisorSocket> socket) {
  const auto launcher = Launcher::Find();
  if (world.rank == 0 || world.node != 0 || !launcher.has_value()) return nullptr;
  return [launcher = *launcher, socket = std::move(socket)] {
    if (!launcher.HasEnded(0)) return absl::OkStatus();
    const absl::Status said = socket->SayJobIsOver();
    if (!said.ok()) return said;
    return absl::UnavailableError(
        "training is over: the server of this launch has ended, so this rank has nothing to do");
  };
}

absl::StatusOr<Launch> TakePartSupervised(const RankPart& rank,
                                          const std::shared_ptr<const SupervisorSocket>& socket) {
  const ServerFlags& flags = rank.flags;
  auto told = socket->Receive();
  if (!told.ok()) return told.status();
  const auto brief = DecodeBrief(*told);
  Wipe(*told);
  if (!brief.ok()) return brief.status();
  const absl::Status able = rank.check(brief->world);
  if (!able.ok()) return able;
  Launch launch;
  launch.world = brief->world;
  if (rank.place == ServerPlace::kElsewhere) return launch;
  if (launch.world.rank > 0) {
    launch.check_servers = CheckOfServers(launch.world, socket);
    const absl::Status over = launch.check_servers ? launch.check_servers() : absl::OkStatus();
    if (!over.ok()) return over;
    launch.ticket = brief->server->ticket;
    launch.server_ranks = launch.ticket.server_ranks;
    if (!ServerIndex(launch.server_ranks, launch.world.rank).has_value()) return launch;
    auto replica = StartLaunchedReplica(flags, *brief);
    if (!replica.ok()) return replica.status();
    launch.server = *std::move(replica);
    return launch;
  }
  auto started = StartLaunchedServer(flags, *brief);
  if (!brief->server.has_value()) {
    const absl::Status told_back = socket->Send(EncodeIdentity(
        started.ok() ? absl::StatusOr<ServerIdentity>(started->identity) : started.status()));
    if (!told_back.ok()) return told_back;
  }
  if (!started.ok()) {
    return brief->server.has_value() ? started.status() : SaidForAllRanks(started.status());
  }
  launch.ticket = started->identity.ticket;
  launch.server_ranks = launch.ticket.server_ranks;
  launch.server = std::move(started->server);
  return launch;
}

}  // namespace

absl::StatusOr<Launch> TakePartInLaunch(const ServerFlags& flags, ServerPlace place,
                                        const std::string& name, const RankCheck& check) {
  const RankPart rank = {flags, place, name, check};
  auto supervised = SupervisorSocket::Inherited();
  if (supervised.has_value()) {
    return TakePartSupervised(rank, std::make_shared<SupervisorSocket>(*std::move(supervised)));
  }
  if (flags.max_restarts == 0) return TakePartAlone(rank);
  const RankCheck may_restart = [&check](const MpiWorld& world) {
    return world.programs_own ? RestartNeedsMpi() : check(world);
  };
  const auto code = Supervise({flags, place, name, may_restart});
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
