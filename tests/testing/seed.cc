#include "tests/testing/seed.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sluice {

uint64_t RunSeed() {
  const char* const asked = std::getenv("SLUICE_TEST_SEED");
  uint64_t seed = 1;
  if (asked != nullptr && !absl::SimpleAtoi(asked, &seed)) {
    ADD_FAILURE() << "SLUICE_TEST_SEED is \"" << asked << "\", expected a whole number from 0";
  }
  return seed;
}

std::string HowToRepeat() {
  const char* const target = std::getenv("TEST_TARGET");  // set by Bazel
  return absl::StrCat("to repeat this: SLUICE_TEST_SEED=", RunSeed(), " tools/test ",
                      target == nullptr ? "TARGET" : target);
}

}  // namespace sluice
