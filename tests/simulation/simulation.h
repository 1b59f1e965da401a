// Plays the whole job of one seed. First workers push, die, come back and send invalid requests.
// Then the disturbances end, and the remaining workers must make progress. Then the job ends.

#ifndef SLUICE_TESTS_SIMULATION_SIMULATION_H_
#define SLUICE_TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"

namespace sluice {

struct Story {
  std::string violation;            // the broken rule; "" if none was broken
  std::vector<std::string> events;  // a line for each event, if `tell`
};

// What is not left to the seed.
struct Choice {
  uint32_t servers = kAnyServers;
  absl::optional<bool> journal = absl::nullopt;

  static constexpr uint32_t kAnyServers = 0;  // 1 to 5
};

// Plays `seed`. The same seed and choice give the same story. With `tell`, the story has its
// events.
Story Simulate(uint64_t seed, bool tell, const Choice& choice = {});

// Plays `seed` again, and returns a text for people about its violation: the seed, the latest
// events, what was expected, and how to play it again.
std::string Report(uint64_t seed, const Choice& choice = {});

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_SIMULATION_H_
