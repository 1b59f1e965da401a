// straggler_main: measures what a stopped worker costs the others: steps per second of one job with
// all workers, and with one of them stopped by SIGSTOP. tools/bench/straggler starts it.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tools/bench/harness/progress_flag.h"

namespace sluice {
namespace {

struct Flags {
  int workers = 4;
  double seconds = 10;
  std::string mode = "backup";
  bool quiet = false;
};

// Returns the steps per second over that time.
absl::StatusOr<double> RateOver(const std::string& address, double seconds,
                                bench::TimedProgress& progress) {
  const auto before = StepOf(address);
  if (!before.ok()) return before.status();
  const absl::Time start = RealClock().Now();
  while (RealClock().Now() - start < absl::Seconds(seconds)) {
    absl::SleepFor(std::min(absl::Milliseconds(100), absl::Seconds(seconds)));
    progress.Note();
  }
  const auto after = StepOf(address);
  if (!after.ok()) return after.status();
  return static_cast<double>(*after - *before) / absl::ToDoubleSeconds(RealClock().Now() - start);
}

absl::Status Measure(const Flags& flags) {
  const auto server = Start({RunfilePath("server/sluice_server"), "--listen=127.0.0.1:0",
                             absl::StrCat("--mode=", flags.mode), "--lease=60",
                             absl::StrCat("--workers=", flags.workers)});
  const auto address = server->WaitForOutput("listening on ([^ ]+)");
  if (!address.ok()) return address.status();
  std::vector<std::unique_ptr<Process>> workers;
  for (int i = 0; i < flags.workers; ++i) {
    workers.push_back(
        Start({RunfilePath("tests/testing/process/pushing_worker_program"), "--gradient=1",
               "--steps=1000000", absl::StrCat("--server=", *address)}));
  }
  const absl::Status warm = WaitForAccepted(*address, 100);
  if (!warm.ok()) return warm;
  absl::optional<bench::TimedProgress> progress;
  progress.emplace("measuring", 3 * absl::Seconds(flags.seconds),
                   bench::ProgressUnless(flags.quiet));
  const auto undisturbed = RateOver(*address, flags.seconds, *progress);
  if (!undisturbed.ok()) return undisturbed.status();
  workers.back()->Signal(SIGSTOP);
  const auto disturbed = RateOver(*address, flags.seconds, *progress);
  if (!disturbed.ok()) return disturbed.status();
  workers.back()->Signal(SIGCONT);
  const auto recovered = RateOver(*address, flags.seconds, *progress);
  if (!recovered.ok()) return recovered.status();
  progress.reset();
  std::cout << absl::StrFormat(
      "%s, %d workers: %.1f steps/s undisturbed, %.1f with one stopped (%.2f of it), %.1f after it "
      "goes on\n",
      flags.mode, flags.workers, *undisturbed, *disturbed, *disturbed / *undisturbed, *recovered);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("Measures what a stopped worker costs the others.", "straggler");
  Flags flags;
  app.add_option("--workers", flags.workers, "workers of the job; one of them is stopped")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "seconds of each of the three measurements")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--mode", flags.mode, "mode of the server: backup, async, bounded or ssp")
      ->capture_default_str();
  bench::AddQuietFlag(app, flags.quiet);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Measure(flags);
  if (status.ok()) return 0;
  std::cerr << absl::StrCat("straggler: ", status.message(), "\n");
  return 1;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
