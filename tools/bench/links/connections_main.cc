// connections_main: measures rounds of one worker through one TCP connection and through several,
// over a network that limits each connection and without a limit. tools/bench/connections starts
// it.
//
// Exit codes: 0 done; 1 failed; 2 bad command line.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/logging.h"
#include "common/base/malloc_tuning.h"
#include "common/net/network.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/server/connect.h"
#include "tools/bench/harness/gradient.h"
#include "tools/bench/harness/machine_info.h"
#include "tools/bench/harness/progress_flag.h"
#include "tools/bench/links/limited_flows.h"
#include "worker/client/parameter_client.h"
#include "worker/connection/grpc/connection.h"

namespace sluice::bench {
namespace {

constexpr int kAutomatic = 0;
// Rounds until every number of connections was tried and one was chosen.
constexpr int kWarmUp = 20;

struct Flags {
  double megabytes = 44.7;
  double flow_megabytes = 100;
  int rounds = 9;
  int passes = 3;
  bool quiet = false;
};

struct Cell {
  bool limited = false;
  int connections = 1;
  std::vector<double> seconds;  // of each round
};

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

absl::StatusOr<std::unique_ptr<ServerConnection>> Connect(const Address& address, int connections) {
  GrpcConnectionOptions options;
  options.address = address.ToString();
  options.connections = connections;
  return ConnectOverGrpc(options);
}

// Runs a job of one worker.
absl::Status Visit(const Flags& flags, const std::string& host, Cell& cell) {
  const auto server = Start({RunfilePath("server/sluice_server"), "--listen=127.0.0.1:0",
                             "--shared-memory=off", "--workers=1"});
  const auto listening = server->WaitForOutput("listening on ([^ ]+)");
  if (!listening.ok()) return listening.status();
  auto address = ParseAddress(*listening);
  if (!address.ok()) return address.status();
  std::unique_ptr<LimitedFlows> network;
  if (cell.limited) {
    auto started =
        LimitedFlows::Start(host, *address, static_cast<uint32_t>(flags.flow_megabytes * 1e6));
    if (!started.ok()) return started.status();
    network = *std::move(started);
    *address = network->address();
  }
  auto connection = Connect(*address, cell.connections);
  if (!connection.ok()) return connection.status();
  const auto elements = static_cast<uint32_t>(flags.megabytes * 1e6 / sizeof(float));
  const SharedFloats gradient = Share(SyntheticGradient(elements));
  std::vector<float> parameters(elements);
  ParameterClient client(*std::move(connection));
  JoinRequest request = WorkerRequest("worker", elements);
  request.optimizer.options = SgdOptions{kLearningRate};
  const absl::Status joined = client.Join(request, absl::MakeSpan(parameters));
  if (!joined.ok()) return joined;
  const int warm_up = cell.connections == kAutomatic ? kWarmUp : 2;
  for (int round = 0; round < warm_up + flags.rounds; ++round) {
    const absl::Time begin = RealClock().Now();
    const auto report =
        client.PushPull(gradient, 1, absl::nullopt, absl::MakeSpan(parameters)).status();
    if (!report.ok()) return report;
    if (round >= warm_up) cell.seconds.push_back(absl::ToDoubleSeconds(RealClock().Now() - begin));
  }
  const absl::Status right = CheckParameters(gradient.values, client.step().value(), parameters);
  return right.ok() ? client.Leave({}) : right;
}

void Print(const Flags& flags, const std::vector<Cell>& cells) {
  std::cout << absl::StrFormat(
      "1 worker, %.1f MB each way in a round; %d rounds x %d passes, medians; congestion control "
      "%s; load before: %.2f\n\n",
      flags.megabytes, flags.rounds, flags.passes, CongestionControl(), LoadAverage());
  std::cout << "| each connection carries | connections | ms of a round | least-most | MB/s each "
               "way | times as fast as one |\n|---|---|---|---|---|---|\n";
  double of_one = 0;
  for (const Cell& cell : cells) {
    const double median = MedianOf(cell.seconds);
    if (cell.connections == 1) of_one = median;
    const auto ends = std::minmax_element(cell.seconds.begin(), cell.seconds.end());
    std::cout << absl::StrFormat(
        "| %s | %s | %.1f | %.1f-%.1f | %.0f | %.2f |\n",
        cell.limited ? absl::StrFormat("%.0f MB/s", flags.flow_megabytes) : "what it can",
        cell.connections == kAutomatic ? "auto" : absl::StrCat(cell.connections), 1e3 * median,
        1e3 * *ends.first, 1e3 * *ends.second, 2 * flags.megabytes / median, of_one / median);
  }
}

absl::Status VisitAll(const Flags& flags, const std::string& host, std::vector<Cell>& cells) {
  ProgressLine progress("measuring", static_cast<uint64_t>(flags.passes) * cells.size(),
                        ProgressUnless(flags.quiet), RealClock());
  uint64_t done = 0;
  for (int pass = 0; pass < flags.passes; ++pass) {
    for (Cell& cell : cells) {
      progress.Reach(done++);
      const absl::Status visited = Visit(flags, host, cell);
      if (!visited.ok()) return visited;
    }
  }
  return absl::OkStatus();
}

absl::Status Measure(const Flags& flags) {
  const auto host = RoutableHost("");
  if (!host.ok()) {
    std::cout << "auto is left out: it stays with one connection on loopback, and this machine has "
                 "no other address\n";
  }
  std::vector<Cell> cells;
  for (const bool limited : {true, false}) {
    for (const int connections : {1, 2, 4, 8, kAutomatic}) {
      const bool stays_with_one = !limited || !host.ok();
      if (connections == kAutomatic && stays_with_one) continue;
      cells.push_back({limited, connections, {}});
    }
  }
  const absl::Status visited = VisitAll(flags, host.value_or("127.0.0.1"), cells);
  if (visited.ok()) Print(flags, cells);
  return visited;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Measures the rounds of one worker through one TCP connection and through several: over a "
      "relay that limits each connection, and without a limit.",
      "tools/bench/connections");
  Flags flags;
  app.add_option("--size", flags.megabytes, "MB (a million bytes) of float32 in the vector")
      ->check(NumberFrom(1, 4000))
      ->capture_default_str();
  app.add_option("--flow", flags.flow_megabytes, "MB/s of a limited connection, each way")
      ->check(NumberFrom(1, 4000))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds, "measured rounds of a cell in one pass")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--passes", flags.passes, "passes over all cells; each starts new processes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  AddQuietFlag(app, flags.quiet);
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  InitLogging();
  KeepFreedMemory();
  const absl::Status status = Measure(flags);
  if (status.ok()) return 0;
  std::cerr << "connections: " << status.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
