// crowd_main: measures what one server costs for each worker, with up to thousands of workers.
//
// tools/bench/crowd starts it. Exit codes: 0 done; 1 a row failed, or its counters do not add up;
// 2 bad command line.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/progress_line.h"
#include "tools/bench/crowds/crowd_row.h"
#include "tools/bench/crowds/crowd_table.h"
#include "tools/bench/harness/machine_info.h"
#include "tools/bench/harness/progress_flag.h"

namespace sluice::bench {
namespace {

constexpr char kPurpose[] =
    "Measures what one server costs for each worker, with 10 to 1000 workers. The server is\n"
    "sluice_server, or, with the mode bare, a plain gRPC server. Each worker has a session, a\n"
    "connection and a thread of its own. Prints a table; tools/bench/README.md explains its\n"
    "columns.";
constexpr double kMaxBytes = 4e9;
constexpr uint32_t kMaxCrowd = 100'000;

struct CrowdFlags {
  std::vector<uint32_t> workers = {10, 100, 400, 1000};
  std::vector<double> sizes = {4e3};
  std::vector<std::string> modes = {"sync", "bounded", "ssp", "async"};
  std::string json;
  CrowdSetup setup;
  bool quiet = false;
};

void AddRowFlags(CLI::App& app, CrowdFlags& flags) {
  const std::map<std::string, double> units = {{"b", 1}, {"kb", 1e3}, {"mb", 1e6}};
  app.add_option("--workers", flags.workers, "how many workers")
      ->check(CLI::Range(1U, kMaxCrowd))
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--sizes", flags.sizes, "bytes of float32 in the vector, as 4KB or 1.7MB")
      ->transform(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::CASE_INSENSITIVE, "SIZE"))
      ->check(NumberFrom(sizeof(float), kMaxBytes))
      ->delimiter(',')
      ->default_str("4KB");
  app.add_option(
         "--modes", flags.modes,
         "modes of the server; \"bare\": plain calls of gRPC, with the vector's bytes each way")
      ->check(CLI::IsMember({kBareMode, "sync", "bounded", "ssp", "async"}))
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--kill", flags.setup.kill,
                 "kill so many workers at once after the measured time, and wait until the server "
                 "has evicted them");
  app.add_option("--json", flags.json,
                 "file to which each result is also written, as a line of JSON")
      ->type_name("FILE");
}

void AddSetupFlags(CLI::App& app, CrowdSetup& setup) {
  const auto seconds = [&](const char* name, double& value, const char* what, double least) {
    app.add_option(name, value, what)->check(SecondsFrom(least))->capture_default_str();
  };
  seconds("--seconds", setup.seconds,
          "measured seconds of a row; more until a worker has made 10 rounds on average",
          kMicrosecond);
  seconds("--idle", setup.idle,
          "seconds with all workers joined and none pushing; heartbeats come in every third of a "
          "lease, and every 5 s at least",
          kMicrosecond);
  seconds("--warm-up", setup.warm_up, "seconds of pushing that do not count", 0);
  seconds("--compute", setup.compute, "seconds that a worker pauses before each push", 0);
  seconds("--lease", setup.lease, "--lease of the server", kMicrosecond);
  app.add_option("--processes", setup.processes, "that hold the workers")
      ->check(CLI::Range(1U, kMaxCrowd))
      ->capture_default_str();
  app.add_flag("--tcp", setup.tcp, "connect over TCP on loopback (default: a unix socket)");
  app.add_flag("--shared-memory", setup.shared_memory, "for gradients and parameters");
  app.add_flag("--two-calls", setup.two_calls,
               "push and pull by a call each, even if the vector is small");
  app.add_option("--root", setup.root, "the folder of the runfiles")->group("");
}

absl::Status Validate(const CrowdFlags& flags) {
  const bool bare = absl::c_linear_search(flags.modes, kBareMode);
  if (flags.setup.kill > 0 && bare) {
    return absl::InvalidArgumentError(
        "--kill waits for evictions, which calls of gRPC without Sluice do not have; give --modes "
        "without bare");
  }
  if ((flags.setup.shared_memory || flags.setup.two_calls) && bare) {
    return absl::InvalidArgumentError(
        "--shared-memory and --two-calls are for Sluice's rounds; give --modes without bare");
  }
  const uint32_t fewest = *std::min_element(flags.workers.begin(), flags.workers.end());
  if (flags.setup.kill < fewest) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--kill is ", flags.setup.kill,
                                                 ", expected less than the ", fewest,
                                                 " of --workers, since others must go on"));
}

std::vector<CrowdCase> CasesOf(const CrowdFlags& flags) {
  std::vector<CrowdCase> cases;
  for (const double bytes : flags.sizes) {
    for (const std::string& mode : flags.modes) {
      for (const uint32_t workers : flags.workers) {
        const auto elements = static_cast<uint64_t>(bytes) / sizeof(float);
        cases.push_back({elements * sizeof(float), workers, mode});
      }
    }
  }
  return cases;
}

struct Rows {
  std::vector<CrowdResult> results;
  std::vector<std::string> failures;  // a line for each row that could not be measured
  bool right = true;
};

// JSON is written after each row, since a run takes long.
Rows MeasureRows(const CrowdFlags& flags, std::ostream& json) {
  Rows rows;
  const std::vector<CrowdCase> cases = CasesOf(flags);
  ProgressLine progress(absl::StrFormat("measuring %d rows", cases.size()), cases.size(),
                        ProgressUnless(flags.quiet), RealClock());
  for (size_t i = 0; i < cases.size(); ++i) {
    const CrowdCase& of = cases[i];
    progress.Reach(i);
    const auto result = MeasureRow(of, flags.setup);
    if (result.ok()) {
      rows.right = rows.right && result->wrong.empty();
      rows.results.push_back(*result);
      json << CrowdJsonLines({*result}) << std::flush;
    } else {
      rows.failures.push_back(absl::StrFormat("%d bytes, %d workers, %s: %s", of.bytes, of.workers,
                                              of.mode, result.status().message()));
    }
  }
  return rows;
}

// Returns true if every row succeeded and is right.
bool Measure(const CrowdFlags& flags, std::ostream& json) {
  std::cout << absl::StrFormat(
                   "%s; %d processes of workers; lease %g s, %g s of compute; %d cores, load %.1f "
                   "before\n\n",
                   flags.setup.tcp ? "TCP" : "unix socket", flags.setup.processes,
                   flags.setup.lease, flags.setup.compute, std::thread::hardware_concurrency(),
                   LoadAverage())
            << std::flush;
  const Rows rows = MeasureRows(flags, json);
  std::cout << CrowdTable(rows.results) << std::flush;
  for (const std::string& line : rows.failures) std::cout << "failed: " << line << std::endl;
  return rows.right && rows.failures.empty();
}

int Fail(const absl::Status& why) {
  std::cerr << absl::StrCat("crowd: ", why.message(), "\n");
  return absl::IsInvalidArgument(why) ? 2 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app(kPurpose, "tools/bench/crowd");
  CrowdFlags flags;
  AddRowFlags(app, flags);
  AddSetupFlags(app, flags.setup);
  AddQuietFlag(app, flags.quiet);
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  const absl::Status valid = Validate(flags);
  if (!valid.ok()) return Fail(valid);
  const uint32_t most = *std::max_element(flags.workers.begin(), flags.workers.end());
  const absl::Status allowed = AllowFiles(most);
  if (!allowed.ok()) return Fail(allowed);
  std::ofstream json;
  if (!flags.json.empty()) {
    json.open(flags.json);  // now, not after minutes
    if (!json) return Fail(absl::InvalidArgumentError("cannot write to " + flags.json));
  }
  PrepareEnvironment(1);
  const bool went_well = Measure(flags, json);
  if (!flags.json.empty() && !json) {
    return Fail(absl::DataLossError("could not write all of " + flags.json));
  }
  return went_well ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
