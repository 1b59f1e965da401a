// The answer to a push or a pull, in a form that compares the expected answer with the actual one.

#ifndef SLUICE_TESTS_SIMULATION_VERDICT_H_
#define SLUICE_TESTS_SIMULATION_VERDICT_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "common/base/error.h"
#include "common/protocol/protocol_types.h"

namespace sluice {

// The server answered a push with an error or with an outcome; or with neither, and then the push
// may continue.
struct PushVerdict {
  Reason reason = Reason::kNone;
  bool answered = false;
  PushOutcome outcome;

  static PushVerdict GoesOn() { return {}; }
  static PushVerdict Error(Reason reason) { return {reason, false, {}}; }
  static PushVerdict Answer(const PushOutcome& outcome) { return {Reason::kNone, true, outcome}; }
  bool goes_on() const { return reason == Reason::kNone && !answered; }
};

bool operator==(const PushOutcome& a, const PushOutcome& b);
bool operator==(const PushVerdict& a, const PushVerdict& b);
std::string Words(const PushOutcome& outcome);
std::string Words(const PushVerdict& verdict);

// An error, or the parameters of a step.
struct PullVerdict {
  Reason reason = Reason::kNone;
  uint64_t step = 0;
};

bool operator==(const PullVerdict& a, const PullVerdict& b);
std::string Words(const PullVerdict& verdict);
std::string Words(absl::Span<const float> values);

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_VERDICT_H_
