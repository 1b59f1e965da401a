// crowd_worker_main: a process that holds many workers. tools/bench/crowd starts it, and
// crowd_process.h is the other end. It answers each line on stdin with a line of numbers on stdout:
//
//   line      answer                       meaning
//   (none)    (nothing)                    all workers have connected
//   "join"    FIRST LAST                   all have joined; see JoinTimes
//   "start"   (nothing)                    all push and pull from now on
//   "take"    LEAST MICROSECONDS…          the rounds that ended since the last "take": how many
//                                          the worker with the fewest has, then the time of each
//   "leave"   ACCEPTED STALE OTHERS MOST   all have left: the answers to their pushes, and the
//                                          rounds of the worker that made most
//
// It ends when its stdin ends. Exit codes: 0 done; 1 failed; 2 bad command line.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/command_line.h"
#include "common/base/logging.h"
#include "common/base/malloc_tuning.h"
#include "tools/bench/crowds/worker_crowd.h"

namespace sluice::bench {
namespace {

std::string AnswerToTake(WorkerCrowd& crowd) {
  const TakenRounds taken = crowd.Take();
  std::string line = absl::StrCat(taken.least);
  for (const float seconds : taken.seconds) absl::StrAppend(&line, " ", std::lround(1e6 * seconds));
  return line;
}

absl::StatusOr<std::string> AnswerTo(const std::string& line, WorkerCrowd& crowd) {
  if (line == "join") {
    const auto times = crowd.Join();
    if (!times.ok()) return times.status();
    return absl::StrFormat("%.6f %.6f", times->first, times->last);
  }
  if (line == "start") {
    crowd.Start();
    return "";
  }
  if (line == "take") return AnswerToTake(crowd);
  if (line == "leave") {
    const auto answers = crowd.Leave();
    if (!answers.ok()) return answers.status();
    return absl::StrCat(answers->accepted, " ", answers->stale, " ", answers->others, " ",
                        crowd.MostRounds());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("was told \"", line, "\", expected \"join\", \"start\", \"take\" or \"leave\""));
}

absl::Status AnswerLines(const CrowdOptions& options) {
  auto crowd = WorkerCrowd::Connect(options);
  if (!crowd.ok()) return crowd.status();
  WorkerCrowd& lives_on = *crowd->release();  // its threads may still work when stdin ends
  std::cout << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = AnswerTo(line, lives_on);
    if (!answer.ok()) return answer.status();
    std::cout << *answer << std::endl;
  }
  return absl::OkStatus();
}

int Fail(const absl::Status& why) {
  std::cerr << absl::StrCat("crowd_worker_main: ", why.message()) << std::endl;
  return 1;
}

int Main(int argc, char** argv) {
  CLI::App app("A process full of workers; tools/bench/crowd starts it.", "crowd_worker_main");
  CrowdOptions options;
  double compute = 0;
  app.add_option("--address", options.address, "of the server")->required();
  app.add_option("--elements", options.elements, "float32 numbers in the vector")
      ->check(CLI::PositiveNumber)
      ->required();
  app.add_option("--first", options.first, "index of the first worker");
  app.add_option("--count", options.workers, "how many workers")
      ->check(CLI::PositiveNumber)
      ->required();
  app.add_option("--compute", compute, "seconds that a worker pauses before each push")
      ->check(SecondsFrom(0));
  app.add_flag("--shared-memory", options.shared_memory, "for gradients and parameters");
  app.add_flag("--two-calls", options.two_calls, "in a round, even if the vector is small");
  app.add_flag("--bare", options.bare, "echo bytes with bare_server_main");
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  options.compute = absl::Seconds(compute);
  InitLogging();
  KeepFreedMemory();
  const absl::Status answered = AnswerLines(options);
  // _exit() instead of return: the workers' threads and gRPC's may still run.
  _exit(answered.ok() ? 0 : Fail(answered));
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
