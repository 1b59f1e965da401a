#include "server/program/server_program.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/command_line.h"
#include "common/base/help_text.h"
#include "common/base/logging.h"
#include "common/base/malloc_tuning.h"
#include "common/base/mutex_tuning.h"
#include "common/launch/failure.h"
#include "common/launch/mpi_bootstrap.h"
#include "common/wire/grpc_runtime.h"
#include "common/wire/versions.h"
#include "server/program/launch.h"
#include "server/program/server_flags.h"

namespace sluice {
namespace {

absl::Status CheckRankServes(const MpiWorld& world, uint32_t servers) {
  if (world.rank < static_cast<int>(servers)) return absl::OkStatus();
  if (servers == 1) {
    return absl::InvalidArgumentError(
        "sluice_server is not rank 0; name it first: mpirun -n 1 sluice_server : -n 3 my_program");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("sluice_server is rank ", world.rank, ", and --servers=", servers,
                   " are the ranks 0 to ", servers - 1, "; name it first: mpirun -n ", servers,
                   " sluice_server --servers=", servers, " : -n 3 my_program"));
}

absl::StatusOr<std::unique_ptr<JobServer>> StartUnderMpi(const ServerFlags& flags) {
  const auto servers = LaunchedServers(flags.servers);
  if (!servers.ok()) return ShareFailure(servers.status());
  auto launch = TakePartInLaunch(flags, ServerPlace::kThisRank, "", [&](const MpiWorld& world) {
    return CheckRankServes(world, *servers);
  });
  if (!launch.ok()) return launch.status();
  if (launch->server != nullptr) return std::move(launch->server);
  return absl::InvalidArgumentError(absl::StrCat(
      "sluice_server is rank ", launch->world.rank, " and has --servers=", *servers,
      ", but rank 0 has --servers=", launch->server_ranks.size(), "; give all ranks the same"));
}

absl::StatusOr<std::unique_ptr<JobServer>> StartByHand(const ServerFlags& flags) {
  const absl::Status by_hand = CheckStartedByHand(flags);
  if (!by_hand.ok()) return by_hand;
  return StartStandaloneServer(flags);
}

// Says why there is no server. Returns the exit code.
int Fail(const absl::Status& why) {
  return ReportFailure("sluice_server", why, absl::IsInvalidArgument(why) ? 2 : 1);
}

int PrintOptions(const ServerFlags& flags) {
  const auto config = DescribeConfig(flags);
  if (!config.ok()) return Fail(config.status());
  std::cout << *config << std::flush;
  return 0;
}

}  // namespace

int RunServerProgram(int argc, char** argv, const ServerProgramOptions& options) {
  CLI::App app("A parameter server. Workers push gradients and pull parameters over gRPC.",
               "sluice_server");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  ServerFlags flags;
  flags.files = options.files;
  flags.transforms = options.transforms;
  flags.on_attachments = options.on_attachments;
  flags.program_optimizer = options.program_optimizer;
  AddServerFlags(app, flags);
  bool print_options = false;
  app.add_flag(
      "--print-options", print_options,
      "print as JSON how a server that is started by hand is configured by these flags, with all "
      "limits, and exit");
  AddVersionFlag(app, WireVersions());
  ShowFirst(
      app,
      {"--listen", "--workers", "--mode", "--quorum", "--max-staleness", "--checkpoint-dir",
       "--checkpoint-every", "--durability", "--token-file", "--tls-cert", "--page", "--metrics"},
      {"sluice_server --listen=127.0.0.1:7077 --workers=2        # two workers will come",
       "sluice_server --listen=unix:/tmp/sluice.sock --mode=async --page=127.0.0.1:7000",
       "mpirun -n 1 sluice_server : -n 3 sluice_train           # a launch by MPI"});
  const absl::optional<int> exit_code = ExitCodeOfLaunchedUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  InitLogging();
  KeepFreedMemoryInOneHeap();
  BoundReadBuffers();
  TrustLockOrder();
  if (print_options) return PrintOptions(flags);
  const auto server = LaunchedByMpi() ? StartUnderMpi(flags) : StartByHand(flags);
  if (!server.ok()) return Fail(server.status());
  return (*server)->Serve();
}

}  // namespace sluice
