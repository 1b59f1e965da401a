// round_main: what one round costs a worker and the machine, beside a plain copy of the same bytes.
//
// Started by tools/bench/round. Exit codes: 0 done; 1 failed; 2 bad command line.

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/bench/part.h"
#include "tools/bench/pass.h"
#include "tools/bench/sluice_side.h"
#include "tools/bench/socket_side.h"
#include "tools/bench/table.h"

namespace sluice::bench {
namespace {

constexpr char kPurpose[] =
    "Measures rounds: every worker pushes a gradient and pulls the parameters that come of it, in\n"
    "sync mode, with plain SGD on the server, over a unix socket and over TCP on loopback. Beside\n"
    "it, in the same run, plain blocking sockets of the same kind carry the same bytes there and\n"
    "back. The server and each worker are processes of their own. Prints one table.";
constexpr char kHowToRead[] =
    "How to read the table:\n"
    "  seconds      of the slowest worker of a round, from the start of its push until it has the\n"
    "               parameters: the median of all measured rounds, the least and the most\n"
    "  CPU-seconds  in a round on average: of the server, and of all workers together\n"
    "  peak MB      most memory a process ever held: the server, and the worker that held most\n"
    "  ratio        Sluice / plain sockets of the same kind\n"
    "The sides take turns, so that a busy machine slows both: compare ratios, not seconds, from\n"
    "one day or machine to another. tools/bench/README.md says more.";

constexpr double kMaxMegabytes = 4000;
constexpr uint32_t kMaxWorkers = 64;
constexpr uint32_t kMaxRounds = 10000;

struct RoundFlags {
  std::vector<double> sizes = {1.6, 44, 102};
  std::vector<uint32_t> workers = {1, 2, 4};
  uint32_t rounds = 4;
  uint32_t passes = 3;
  std::string json;
  Part part;
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
  app.add_option("--rounds", flags.rounds, "measured rounds of a cell in one pass")
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--passes", flags.passes, "passes over all cells; each starts new processes")
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--json", flags.json, "file to write as well: for each cell a line of JSON")
      ->type_name("FILE");
  AddPartFlags(app, flags.part);
}

absl::Status CheckRange(const char* flag, double value, double most) {
  if (value > 0 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " has ", value, ", expected more than 0 and at most ", most));
}

absl::Status Validate(const RoundFlags& flags) {
  absl::Status status = CheckRange("--rounds", flags.rounds, kMaxRounds);
  status.Update(CheckRange("--passes", flags.passes, kMaxRounds));
  for (const double megabytes : flags.sizes) {
    status.Update(CheckRange("--sizes", megabytes, kMaxMegabytes));
  }
  for (const uint32_t workers : flags.workers) {
    status.Update(CheckRange("--workers", workers, kMaxWorkers));
  }
  return status;
}

std::vector<Comparison> MakeComparisons(const RoundFlags& flags) {
  std::vector<Comparison> comparisons;
  for (const double megabytes : flags.sizes) {
    const double elements = std::ceil(megabytes * 1e6 / sizeof(float));
    for (const uint32_t workers : flags.workers) {
      for (const SocketKind socket : {SocketKind::kUnix, SocketKind::kTcp}) {
        comparisons.emplace_back();
        comparisons.back().cell = {Side::kSluice, socket, static_cast<uint64_t>(elements), workers};
      }
    }
  }
  return comparisons;
}

// One line that renews itself, for those who watch.
void ShowProgress(uint32_t pass, uint32_t passes, const Cell& cell) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::cerr << absl::StrFormat("\r\033[Kpass %d of %d: %.1f MB, %d workers, %s", pass + 1, passes,
                               Megabytes(Bytes(cell)), cell.workers, SocketName(cell.socket));
}

void EndProgress() {
  if (isatty(STDERR_FILENO) != 0) std::cerr << "\r\033[K";
}

absl::Status MeasureBoth(uint32_t rounds, Comparison& comparison) {
  Cell cell = comparison.cell;
  cell.side = Side::kSluice;
  const absl::Status measured = MeasurePass(cell, rounds, comparison.sluice);
  if (!measured.ok()) return measured;
  cell.side = Side::kPlain;
  return MeasurePass(cell, rounds, comparison.plain);
}

absl::Status MeasureAll(const RoundFlags& flags, std::vector<Comparison>& comparisons) {
  for (uint32_t pass = 0; pass < flags.passes; ++pass) {
    for (Comparison& comparison : comparisons) {
      ShowProgress(pass, flags.passes, comparison.cell);
      const absl::Status measured = MeasureBoth(flags.rounds, comparison);
      if (!measured.ok()) return measured;
    }
  }
  return absl::OkStatus();
}

absl::Status Measure(const RoundFlags& flags) {
  std::ofstream json;
  if (!flags.json.empty()) {
    json.open(flags.json);  // now, not after minutes
    if (!json) return absl::InvalidArgumentError(absl::StrCat("cannot write to ", flags.json));
  }
  Circumstances circumstances = {flags.rounds * flags.passes, flags.passes, 0, 0};
  getloadavg(&circumstances.load, 1);
  std::vector<Comparison> comparisons = MakeComparisons(flags);
  const auto start = std::chrono::steady_clock::now();
  const absl::Status measured = MeasureAll(flags, comparisons);
  EndProgress();
  if (!measured.ok()) return measured;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  circumstances.seconds = took.count();
  std::cout << Table(circumstances, comparisons) << std::flush;
  if (flags.json.empty()) return absl::OkStatus();
  json << JsonLines(comparisons) << std::flush;
  return json ? absl::OkStatus()
              : absl::DataLossError(absl::StrCat("could not write all of ", flags.json));
}

absl::Status RunPart(const Part& part) {
  const bool sluice = part.cell.side == Side::kSluice;
  if (part.kind == PartKind::kServer) return sluice ? RunSluiceServer(part) : RunSocketServer(part);
  return sluice ? RunSluiceWorker(part) : RunSocketWorker(part);
}

int Fail(const std::string& who, const absl::Status& status) {
  std::cerr << who << ": " << status.message() << std::endl;
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app(kPurpose, "tools/bench/round");
  app.footer(kHowToRead);
  RoundFlags flags;
  AddRoundFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (flags.part.kind != PartKind::kNone) {
    const absl::Status ran = RunPart(flags.part);
    // Not return: gRPC's threads may still run, and must not meet what static destructors leave.
    _exit(ran.ok() ? 0 : Fail(Describe(flags.part), ran));
  }
  const absl::Status valid = Validate(flags);
  if (!valid.ok()) return Fail("round", valid);
  signal(SIGPIPE, SIG_IGN);            // a part that has died is an error, not the end
  setenv("GLOG_minloglevel", "1", 0);  // of the parts: each would tell where it listens
  const absl::Status measured = Measure(flags);
  return measured.ok() ? 0 : Fail("round", measured);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
