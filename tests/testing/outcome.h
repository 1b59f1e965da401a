// Matchers for the answer to a push, and the answer as text.

#ifndef SLUICE_TESTS_TESTING_OUTCOME_H_
#define SLUICE_TESTS_TESTING_OUTCOME_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "common/protocol/protocol_types.h"
#include "gmock/gmock.h"
#include "server/state/push_counters.h"

namespace sluice {

// EXPECT_THAT(world.Push("a", 0, {1, 2, 3}), Applied(1));
// The arguments are the step and the staleness that the answer has. Its incarnation must be 1.
using OutcomeMatcher = ::testing::Matcher<const absl::StatusOr<PushOutcome>&>;
OutcomeMatcher Accepted(uint64_t step, uint64_t staleness = 0);
OutcomeMatcher Applied(uint64_t step, uint64_t staleness = 0);
OutcomeMatcher Stale(uint64_t step, uint64_t staleness);
OutcomeMatcher Skipped(uint64_t step, uint64_t staleness = 0);
// A duplicate of a push whose first answer was `first`, with the step and staleness of that answer.
OutcomeMatcher Repeated(Disposition first, uint64_t step, uint64_t staleness = 0);

// The counters that are not 0: "4 received: 2 accepted, 1 stale, 1 in progress".
std::string Columns(const PushCounters& counters);

// How gtest shows them.
void PrintTo(Disposition disposition, std::ostream* out);
void PrintTo(const PushOutcome& outcome, std::ostream* out);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_OUTCOME_H_
