#include "server/program/server_program.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <utility>

#include "common/base/command_line.h"
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

absl::StatusOr<std::unique_ptr<Server>> StartUnderMpi(const ServerFlags& flags) {
  auto launch =
      TakePartInLaunch(flags, ServerPlace::kRankZero, [](const MpiWorld& world) -> absl::Status {
        if (world.rank == 0) return absl::OkStatus();
        return absl::InvalidArgumentError(
            "sluice_server is not rank 0; name it first: mpirun -n 1 sluice_server : -n 3 "
            "my_program");
      });
  if (!launch.ok()) return launch.status();
  return std::move(launch->server);
}

absl::StatusOr<std::unique_ptr<Server>> StartByHand(const ServerFlags& flags) {
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
  AddServerFlags(app, flags);
  bool print_options = false;
  app.add_flag(
      "--print-options", print_options,
      "print as JSON how a server that is started by hand is configured by these flags, with all "
      "limits, and exit");
  AddVersionFlag(app, WireVersions());
  const absl::optional<int> exit_code = ExitCodeOfLaunchedUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  InitLogging();
  KeepFreedMemoryInOneHeap();
  BoundReadBuffers();
  TrustLockOrder();
  if (print_options) return PrintOptions(flags);
  const auto server = LaunchedByMpi() ? StartUnderMpi(flags) : StartByHand(flags);
  if (!server.ok()) return Fail(server.status());
  const int code = (*server)->Serve();
  std::cout << (*server)->ClosingTable() << std::flush;
  return code;
}

}  // namespace sluice
