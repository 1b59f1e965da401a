// optimizers_main: measures the server's step of each optimizer beside torch::optim's step.
//
// tools/bench/optimizers starts it. Exit codes: 0 done; 1 the two sides have different parameters;
// 2 bad command line.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/malloc_tuning.h"
#include "tools/bench/harness/gradient.h"
#include "tools/bench/harness/layers.h"
#include "tools/bench/harness/machine_info.h"
#include "tools/bench/harness/progress_flag.h"
#include "tools/bench/optimizer_race/optimizer_side.h"
#include "tools/bench/optimizer_race/optimizer_table.h"

namespace sluice::bench {
namespace {

constexpr char kPurpose[] =
    "Measures steps of each optimizer: Sluice's, from a received gradient to the next snapshot, "
    "and "
    "torch::optim's, in turn, with the same threads. tools/bench/README.md tells more.";

struct Flags {
  uint64_t elements = 25600000;
  bool layers = false;
  uint32_t threads = 1;
  uint32_t rounds = 15;
  std::vector<std::string> only;
  bool quiet = false;
};

struct Entry {
  std::string name;
  OptimizerOptions options;
};

// Every optimizer with its default options, and some with options that cost time.
std::vector<Entry> AllEntries() {
  std::vector<Entry> entries;
  for (const OptimizerOptions& options : AllOptimizers()) {
    if (WorkersStep(options) || IsOfProgram(options)) continue;
    entries.push_back({std::string(OptimizerName(options)), options});
  }
  SgdOptions momentum;
  momentum.momentum = 0.9;
  AdamOptions amsgrad;
  amsgrad.amsgrad = true;
  RmsPropOptions all;
  all.centered = true;
  all.momentum = 0.9;
  entries.push_back({"sgd-momentum", momentum});
  entries.push_back({"adam-amsgrad", amsgrad});
  entries.push_back({"rmsprop-all", all});
  return entries;
}

double SecondsOf(OptimizerSide& side) {
  const auto start = std::chrono::steady_clock::now();
  side.Step();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Whether both sides have the same parameters, except for rounding.
bool Agree(const OptimizerSide& ours, const OptimizerSide& theirs) {
  constexpr double kBound = 1e-4;  // relative to the largest parameter
  const std::vector<float> a = ours.Parameters();
  const std::vector<float> b = theirs.Parameters();
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return a.size() == b.size() && difference <= kBound * largest;
}

// Returns false if the two sides do not agree.
bool Run(const Entry& entry, const Flags& flags, const std::vector<float>& gradient,
         std::vector<OptimizerRace>& races) {
  constexpr uint32_t kWarmUp = 3;
  ProgressLine progress("measuring " + entry.name, kWarmUp + flags.rounds,
                        ProgressUnless(flags.quiet), RealClock());
  std::vector<uint64_t> tensors = {flags.elements};
  if (flags.layers) tensors = LayersOf(flags.elements);
  const auto ours = MakeSluiceSide(entry.options, tensors, gradient, flags.threads);
  const auto theirs = MakeTorchSide(entry.options, tensors, gradient, flags.threads);
  OptimizerRace race = {entry.name, {}, {}};
  for (uint32_t round = 0; round < kWarmUp + flags.rounds; ++round) {
    progress.Reach(round);
    const double of_ours = SecondsOf(*ours);
    if (round >= kWarmUp) race.ours.push_back(of_ours);
    if (theirs == nullptr) continue;
    const double of_theirs = SecondsOf(*theirs);
    if (round >= kWarmUp) race.theirs.push_back(of_theirs);
  }
  races.push_back(race);
  return theirs == nullptr || Agree(*ours, *theirs);
}

int Measure(const Flags& flags) {
  const double load = LoadAverage();
  const std::vector<float> gradient = SyntheticGradient(flags.elements);
  std::vector<OptimizerRace> races;
  for (const Entry& entry : AllEntries()) {
    const bool wanted =
        flags.only.empty() || std::count(flags.only.begin(), flags.only.end(), entry.name) > 0;
    if (!wanted) continue;
    if (!Run(entry, flags, gradient, races)) {
      std::cerr << "optimizers: " << entry.name << " has other parameters than torch::optim\n";
      return 1;
    }
  }
  std::cout << absl::StrFormat(
      "%d elements, %s; %d threads each of %d cores; %d rounds; load before %.2f\n", flags.elements,
      flags.layers ? "a model's tensors" : "one tensor", flags.threads,
      std::thread::hardware_concurrency(), flags.rounds, load);
  std::cout << OptimizerTable(races) << std::flush;
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app(kPurpose, "tools/bench/optimizers");
  Flags flags;
  std::vector<std::string> names;
  for (const Entry& entry : AllEntries()) names.push_back(entry.name);
  app.add_option("--elements", flags.elements, "of the model")
      ->check(CLI::Range(uint64_t{1000}, uint64_t{1} << 30))
      ->capture_default_str();
  app.add_flag("--layers", flags.layers,
               "in the tensors of a model of that size, in place of one tensor");
  app.add_option("--threads", flags.threads, "for arithmetic, of each side")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds, "measured steps of each side, after 3 that are not")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--only", flags.only, absl::StrJoin(names, ","))
      ->check(CLI::IsMember(names))
      ->delimiter(',');
  AddQuietFlag(app, flags.quiet);
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  PrepareEnvironment(flags.threads);
  KeepFreedMemory();  // for both: LibTorch's temporaries are large and short-lived
  return Measure(flags);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
