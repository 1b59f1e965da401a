// round_main: measures what one round costs, in Sluice and in its peers.
//
// tools/bench/round starts it. Exit codes: 0 done; 1 a cell failed; 2 bad command line.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/command_line.h"
#include "tools/bench/harness/machine_info.h"
#include "tools/bench/harness/measure.h"
#include "tools/bench/harness/progress_flag.h"
#include "tools/bench/rounds/table.h"

namespace sluice::bench {
namespace {

constexpr char kPurpose[] =
    "Measures rounds: every worker pushes a gradient and pulls the parameters of the next step.\n"
    "Rows are Sluice over each kind of socket, in sync mode, and its peers. The same bytes go\n"
    "through all of them, in turn, in one run. Server and workers are processes of their own.\n"
    "Prints one table. tools/bench/README.md explains the rows.";
constexpr char kHowToRead[] =
    "How to read the table:\n"
    "  seconds     of the slowest worker of a round, from the start of its push until it has the\n"
    "              parameters: the median of all measured rounds, the least, the most\n"
    "  times       how many times as long as Sluice's row: above 1 Sluice is faster\n"
    "  CPU-s       CPU-seconds in a round on average: of the server, and of all workers together\n"
    "  peak MB     most memory a process ever held: the server, and the worker that held most\n"
    "Compare ratios, not seconds, from one day or machine to another.";

constexpr double kMaxMegabytes = 4000;
constexpr uint32_t kMaxWorkers = 64;
constexpr uint32_t kMaxRounds = 10000;

struct RoundFlags {
  std::vector<double> sizes = {1.7, 44.7, 102};
  std::vector<uint32_t> workers = {1, 2, 4, 8};
  std::vector<std::string> rows;
  uint32_t rounds = 3;
  uint32_t passes = 3;
  uint32_t threads = 1;
  std::string json;
  bool quiet = false;
  Programs programs;
};

void AddRoundFlags(CLI::App& app, RoundFlags& flags) {
  app.add_option("--sizes", flags.sizes, "MB (a million bytes) of float32 in the vector")
      ->type_name("MB")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--workers", flags.workers, "how many workers")
      ->type_name("COUNT")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--rows", flags.rows, "the rows to measure (default: all)")
      ->type_name("ROW")
      ->delimiter(',');
  app.add_option("--rounds", flags.rounds, "measured rounds of a cell in one pass")
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--passes", flags.passes, "passes over all cells; each starts new processes")
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--threads", flags.threads,
                 "threads for arithmetic in each server, and in each process of a peer")
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--json", flags.json,
                 "file to which each result is also written, as a line of JSON")
      ->type_name("FILE");
  AddQuietFlag(app, flags.quiet);
  app.add_option("--python", flags.programs.python, "interpreter that has Debian's packages")
      ->capture_default_str();
  app.add_option("--root", flags.programs.root, "where tools/bench/rounds/participant_main lies")
      ->group("");
}

absl::Status CheckRange(const char* flag, double value, double most) {
  if (value > 0 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " has ", value, ", expected more than 0 and at most ", most));
}

absl::Status Validate(const RoundFlags& flags) {
  absl::Status status = CheckRange("--rounds", flags.rounds, kMaxRounds);
  status.Update(CheckRange("--passes", flags.passes, kMaxRounds));
  status.Update(CheckRange("--threads", flags.threads, kMaxWorkers));
  for (const double megabytes : flags.sizes) {
    status.Update(CheckRange("--sizes", megabytes, kMaxMegabytes));
  }
  for (const uint32_t workers : flags.workers) {
    status.Update(CheckRange("--workers", workers, kMaxWorkers));
  }
  return status;
}

// Returns the rows that --rows names, in the order of the table.
absl::StatusOr<std::vector<Row>> WantedRows(const RoundFlags& flags) {
  const std::vector<Row> all = AllRows(flags.programs.python);
  if (flags.rows.empty()) return all;
  std::vector<Row> wanted;
  for (const Row& row : all) {
    if (std::count(flags.rows.begin(), flags.rows.end(), row.name) > 0) wanted.push_back(row);
  }
  if (wanted.size() == flags.rows.size()) return wanted;
  const auto name = [](std::string* out, const Row& row) { absl::StrAppend(out, row.name); };
  return absl::InvalidArgumentError(absl::StrCat("--rows has ", absl::StrJoin(flags.rows, ","),
                                                 ", expected some of ",
                                                 absl::StrJoin(all, ",", name)));
}

std::vector<Cell> MakeCells(const RoundFlags& flags, const std::vector<Row>& rows) {
  std::vector<Cell> cells;
  for (const double megabytes : flags.sizes) {
    for (const uint32_t workers : flags.workers) {
      for (const Row& row : rows) cells.push_back({row, ElementsOf(megabytes), workers});
    }
  }
  return cells;
}

// Measures and prints. Returns true if every cell succeeded.
bool Measure(const RoundFlags& flags, const std::vector<Row>& wanted, std::ostream& json) {
  const Availability available = FindAvailable(wanted, flags.programs);
  for (const std::string& line : available.skipped) std::cout << "skipped: " << line << std::endl;
  Circumstances circumstances;
  circumstances.passes = flags.passes;
  circumstances.threads = flags.threads;
  circumstances.cores = std::thread::hardware_concurrency();
  circumstances.congestion = CongestionControl();
  circumstances.load = LoadAverage();
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = MeasureCells(MakeCells(flags, available.rows), flags.programs,
                                       flags.rounds, flags.passes, ProgressUnless(flags.quiet));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  circumstances.seconds = took.count();
  std::cout << Table(circumstances, outcome.results) << std::flush;
  for (const std::string& line : outcome.failures) std::cout << "failed: " << line << std::endl;
  json << JsonLines(outcome.results) << std::flush;
  return outcome.failures.empty();
}

int Fail(const absl::Status& status) {
  std::cerr << "round: " << status.message() << std::endl;
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app(kPurpose, "tools/bench/round");
  app.footer(kHowToRead);
  RoundFlags flags;
  AddRoundFlags(app, flags);
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  const absl::Status valid = Validate(flags);
  if (!valid.ok()) return Fail(valid);
  const auto rows = WantedRows(flags);
  if (!rows.ok()) return Fail(rows.status());
  std::ofstream json;
  if (!flags.json.empty()) {
    json.open(flags.json);  // now, not after minutes
    if (!json) return Fail(absl::InvalidArgumentError("cannot write to " + flags.json));
  }
  PrepareEnvironment(flags.threads);
  const bool went_well = Measure(flags, *rows, json);
  if (!flags.json.empty() && !json) {
    return Fail(absl::DataLossError("could not write all of " + flags.json));
  }
  return went_well ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
