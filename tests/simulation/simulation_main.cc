// Plays seeds and prints those that break the contract.
//
// Exit codes: 0: none does. 1: one does. 2: wrong command line.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>

#include "absl/strings/str_join.h"
#include "common/base/command_line.h"
#include "tests/simulation/simulation.h"

namespace sluice {
namespace {

int Replay(uint64_t seed) {
  const Story story = Simulate(seed, true);
  std::cout << absl::StrJoin(story.events, "\n") << "\n";
  if (story.violation.empty()) {
    std::cout << "The contract held.\n";
    return 0;
  }
  std::cout << "Violation at " << story.violation << "\n";
  return 1;
}

int PlayAll(uint64_t first, uint64_t seeds) {
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    if (Simulate(seed, false).violation.empty()) continue;
    std::cout << Report(seed);
    return 1;
  }
  std::cout << "The contract held over " << seeds << " seeds from " << first << " on.\n";
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Plays seeded stories of workers against one shard, and checks its contract.",
               "simulation");
  uint64_t seeds = 10000;
  uint64_t first = 1;
  uint64_t replayed = 0;
  app.add_option("--seeds", seeds, "how many to play")->capture_default_str();
  app.add_option("--first-seed", first, "the first of them")->capture_default_str();
  const CLI::Option* const replay =
      app.add_option("--seed", replayed, "play this one alone, and print every event");
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  return replay->count() > 0 ? Replay(replayed) : PlayAll(first, seeds);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
