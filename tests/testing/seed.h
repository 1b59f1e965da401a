// The seed of a run's random tests. tools/test derives it from the commit, so that each commit
// tests other random cases.
//
// A test that uses it is declared with `seeded = True` (tests/sluice_test.bzl), and begins with
//
//   SCOPED_TRACE(HowToRepeat());

#ifndef SLUICE_TESTS_TESTING_SEED_H_
#define SLUICE_TESTS_TESTING_SEED_H_

#include <cstdint>
#include <string>

namespace sluice {

// The environment's SLUICE_TEST_SEED, or 1 if there is none.
uint64_t RunSeed();

// The command that repeats this test with the same seed.
std::string HowToRepeat();

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SEED_H_
