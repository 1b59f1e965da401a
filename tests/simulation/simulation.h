// Everything that one seed plays: first workers push, die, return and lie; then the disturbances
// end and the remaining workers must make progress; then the job ends.

#ifndef SLUICE_TESTS_SIMULATION_SIMULATION_H_
#define SLUICE_TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

struct Story {
  std::string violation;            // "" if the contract held
  std::vector<std::string> events;  // in words, if asked for
};

// Plays `seed`. The same seed is the same story, told or not.
Story Simulate(uint64_t seed, bool tell);

// Of a violation: the seed, the latest events in words, what was expected, how to play it again.
std::string Report(uint64_t seed);

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_SIMULATION_H_
