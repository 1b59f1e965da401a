// participant_main: a server or a worker of the rows of Sluice and of plain sockets. Exit codes:
// 0 done; 1 failed; 2 bad command line.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/command_line.h"
#include "tools/bench/harness/endpoint.h"
#include "tools/bench/harness/participant.h"
#include "tools/bench/rounds/sluice_side.h"
#include "tools/bench/rounds/socket_side.h"

namespace sluice::bench {
namespace {

enum class Side { kSluice, kPlain };

struct Flags {
  Participant participant;
  Side side = Side::kSluice;
  SocketOptions socket;
  SluiceOptions sluice;
};

void AddFlags(CLI::App& app, Flags& flags) {
  const std::map<std::string, Side> sides = {{"sluice", Side::kSluice}, {"plain", Side::kPlain}};
  const std::map<std::string, SocketKind> sockets = {{"unix", SocketKind::kUnix},
                                                     {"tcp", SocketKind::kTcp}};
  app.add_option("--side", flags.side, "sluice or plain")
      ->transform(CLI::CheckedTransformer(sides));
  app.add_option("--socket", flags.socket.socket, "unix or tcp")
      ->transform(CLI::CheckedTransformer(sockets));
  app.add_option("--congestion", flags.socket.congestion, "of TCP, on the plain side");
  app.add_flag("--sgd", flags.socket.sgd, "SGD on the plain side's server");
  app.add_option("--threads", flags.sluice.threads, "that do the arithmetic of Sluice's server")
      ->envname("OMP_NUM_THREADS");
  app.add_flag("--shared-memory", flags.sluice.shared_memory, "for Sluice's tensors");
  app.add_flag("--tls", flags.sluice.tls, "on Sluice's side, with --socket=tcp");
  AddParticipantFlags(app, flags.participant);
}

absl::Status RunPart(const Flags& flags) {
  const bool serves = flags.participant.kind == ParticipantKind::kServer;
  if (flags.side == Side::kSluice) {
    return serves ? RunSluiceServer(flags.participant, flags.socket.socket, flags.sluice)
                  : RunSluiceWorker(flags.participant, flags.sluice);
  }
  return serves ? RunSocketServer(flags.participant, flags.socket)
                : RunSocketWorker(flags.participant, flags.socket);
}

int Fail(const absl::Status& status) {
  std::cerr << absl::StrCat("participant_main: ", status.message()) << std::endl;
  return 1;
}

// A command without a participant; its exit code is the answer.
int Probe(const std::string& congestion) {
  const absl::Status available = ProbeCongestion(congestion);
  return available.ok() ? 0 : Fail(available);
}

int Main(int argc, char** argv) {
  constexpr absl::string_view kProbe = "--probe-congestion=";
  if (argc == 2 && absl::StartsWith(argv[1], kProbe)) return Probe(argv[1] + kProbe.size());
  CLI::App app("A participant of a row; tools/bench/round starts it.", "participant_main");
  Flags flags;
  AddFlags(app, flags);
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  const absl::Status ran = RunPart(flags);
  // _exit() instead of return: gRPC's threads may still run and must not see destroyed statics.
  _exit(ran.ok() ? 0 : Fail(ran));
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
