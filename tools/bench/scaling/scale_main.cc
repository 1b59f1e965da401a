// scale_main: measures how the cost of a round grows with size and workers, and computes how many
// workers servers of a given kind can feed.
//
// tools/bench/scale starts it. Exit codes: 0 done; 1 a cell failed; 2 bad command line.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/command_line.h"
#include "tools/bench/harness/machine_info.h"
#include "tools/bench/harness/measure.h"
#include "tools/bench/harness/progress_flag.h"
#include "tools/bench/scaling/scale_plan.h"
#include "tools/bench/scaling/scale_table.h"

namespace sluice::bench {
namespace {

constexpr char kPurpose[] =
    "Measures the rounds of one row over a grid of sizes and workers, as far as memory allows.\n"
    "Fits a line to each size, and computes how many workers servers of a given kind can feed.\n"
    "tools/bench/README.md explains the columns.";
constexpr double kShareOfMemory = 0.8;  // of what is available

struct ScaleFlags {
  std::vector<double> sizes = {1.7, 10, 44.7, 102, 200, 400, 800};
  std::vector<uint32_t> workers = {1, 2, 4, 8, 16, 32};
  std::string row = "sluice-tcp";
  uint32_t rounds = 3;
  uint32_t passes = 3;
  std::vector<uint32_t> servers = {1, 2, 4, 8};
  double cores = 0;
  double gbit = 25;
  double worker_gbit = 0;
  double compute = 0.2;
  Programs programs;
  bool quiet = false;
};

void AddMeasurementFlags(CLI::App& app, ScaleFlags& flags) {
  app.add_option("--sizes", flags.sizes, "MB (a million bytes) of float32 in the vector")
      ->check(CLI::PositiveNumber)
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--workers", flags.workers, "how many workers")
      ->check(CLI::PositiveNumber)
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--row", flags.row,
                 "the row to measure: one of tools/bench/round that has a server")
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds, "measured rounds of a cell in one pass")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--passes", flags.passes, "passes over all cells; each starts new processes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void AddEstimateFlags(CLI::App& app, ScaleFlags& flags) {
  app.add_option("--servers", flags.servers, "estimate: servers that share the vector")
      ->check(CLI::PositiveNumber)
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--cores", flags.cores,
                 "estimate: cores of a server (default: those of this machine)")
      ->check(CLI::PositiveNumber);
  app.add_option("--gbit", flags.gbit, "estimate: Gbit/s of a server's network, each way")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--worker-gbit", flags.worker_gbit,
                 "estimate: the same of a worker's network (default: as --gbit)")
      ->check(CLI::PositiveNumber);
  app.add_option("--compute", flags.compute, "estimate: seconds that a worker computes in a batch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--root", flags.programs.root, "where tools/bench/rounds/participant_main lies")
      ->group("");
}

// Returns true if every cell succeeded.
bool Measure(const ScaleFlags& flags, const Row& row) {
  const auto memory =
      static_cast<uint64_t>(kShareOfMemory * static_cast<double>(AvailableMemoryBytes()));
  const ScalePlan plan = PlanScale(row, flags.sizes, flags.workers, memory);
  std::cout << absl::StrFormat("%s; %d cores, load %.1f before; congestion control %s\n", row.name,
                               std::thread::hardware_concurrency(), LoadAverage(),
                               CongestionControl());
  for (const std::string& line : plan.skipped) std::cout << "skipped: " << line << "\n";
  std::cout << std::endl;
  const Outcome outcome = MeasureCells(plan.cells, flags.programs, flags.rounds, flags.passes,
                                       ProgressUnless(flags.quiet));
  Site site;
  site.cores = flags.cores > 0 ? flags.cores : std::thread::hardware_concurrency();
  site.bytes_per_second = flags.gbit * 1e9 / 8;
  site.worker_bytes_per_second = flags.worker_gbit * 1e9 / 8;
  site.compute_seconds = flags.compute;
  std::cout << ScaleTable(outcome.results) << "\n"
            << FittedLines(outcome.results) << "\n"
            << Estimates(CostsOf(outcome.results), site, flags.servers) << "\n"
            << SyncRounds(CostsOf(outcome.results), site, flags.servers, flags.workers)
            << std::flush;
  for (const std::string& line : outcome.failures) std::cout << "failed: " << line << std::endl;
  return outcome.failures.empty();
}

int Main(int argc, char** argv) {
  CLI::App app(kPurpose, "tools/bench/scale");
  ScaleFlags flags;
  AddMeasurementFlags(app, flags);
  AddEstimateFlags(app, flags);
  AddQuietFlag(app, flags.quiet);
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  const std::vector<Row> rows = AllRows(flags.programs.python);
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& candidate) {
    return candidate.name == flags.row && candidate.has_server;
  });
  if (row == rows.end()) {
    std::cerr << absl::StrCat("scale: no row with a server is called ", flags.row, "\n");
    return 2;
  }
  PrepareEnvironment(1);
  return Measure(flags, *row) ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
