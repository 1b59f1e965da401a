// Plays seeds and prints those that break the contract.
//
// Exit codes: 0: none does. 1: one does. 2: wrong command line.

#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>

#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/base/command_line.h"
#include "common/base/thread_pool.h"
#include "tests/simulation/simulation.h"

namespace sluice {
namespace {

constexpr uint64_t kSeedsPerPart = 16;

int Replay(uint64_t seed, const Choice& choice) {
  const Story story = Simulate(seed, true, choice);
  std::cout << absl::StrJoin(story.events, "\n") << "\n";
  if (story.violation.empty()) {
    std::cout << "The contract held.\n";
    return 0;
  }
  std::cout << "Violation at " << story.violation << "\n";
  return 1;
}

// Plays `seeds` from `first` on, with `jobs` threads. Returns the lowest seed that breaks the
// contract, or the end of the range.
uint64_t FirstBroken(uint64_t first, uint64_t seeds, uint32_t jobs, const Choice& choice) {
  absl::Mutex mu;
  uint64_t broken = first + seeds;
  // Parts begin in order, so those below the lowest broken seed are played to their ends.
  ThreadPool(jobs).For((seeds + kSeedsPerPart - 1) / kSeedsPerPart, [&](size_t part) {
    for (uint64_t i = part * kSeedsPerPart; i < (part + 1) * kSeedsPerPart; ++i) {
      {
        absl::MutexLock lock(&mu);
        if (first + i >= broken) return;
      }
      if (Simulate(first + i, false, choice).violation.empty()) continue;
      absl::MutexLock lock(&mu);
      broken = std::min(broken, first + i);
    }
  });
  return broken;
}

int PlayAll(uint64_t first, uint64_t seeds, uint32_t jobs, const Choice& choice) {
  const uint64_t broken = FirstBroken(first, seeds, jobs, choice);
  if (broken < first + seeds) {
    std::cout << Report(broken, choice);
    return 1;
  }
  std::cout << "The contract held over " << seeds << " seeds from " << first << " on.\n";
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Plays seeded stories of workers against the servers of a job, and checks its contract.",
      "simulation");
  uint64_t seeds = 10000;
  uint64_t first = 1;
  uint64_t replayed = 0;
  uint32_t jobs = ThreadPool::UsableCores();
  app.add_option("--seeds", seeds, "how many to play")->capture_default_str();
  app.add_option("--first-seed", first, "the first of them")->capture_default_str();
  app.add_option("--jobs", jobs, "how many threads play, each its own seeds")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  Choice choice;
  app.add_option("--servers", choice.servers, "of each job; 0: as the seed says")
      ->check(CLI::Range(0, 5))
      ->capture_default_str();
  std::string durability = "any";
  app.add_option("--durability", durability, "of each job; any: as the seed says")
      ->check(CLI::IsMember({"any", "memory", "journal"}))
      ->capture_default_str();
  const CLI::Option* const replay =
      app.add_option("--seed", replayed, "play this one alone, and print every event");
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  if (durability != "any") choice.journal = durability == "journal";
  FLAGS_minloglevel = google::GLOG_ERROR;  // no warnings of lost workers, thousands a second
  // Each shard's locks are taken by one thread, always in the same few orders: simulation_test lets
  // Abseil look for cycles.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return replay->count() > 0 ? Replay(replayed, choice) : PlayAll(first, seeds, jobs, choice);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
