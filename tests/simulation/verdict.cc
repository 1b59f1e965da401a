#include "tests/simulation/verdict.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice {

bool operator==(const PushOutcome& a, const PushOutcome& b) {
  return a.disposition == b.disposition && a.step == b.step && a.incarnation == b.incarnation &&
         a.staleness == b.staleness && a.first_disposition == b.first_disposition;
}

bool operator==(const PushVerdict& a, const PushVerdict& b) {
  return a.reason == b.reason && a.answered == b.answered &&
         (!a.answered || a.outcome == b.outcome);
}

std::string Words(const PushOutcome& outcome) {
  std::string words = absl::StrCat(DispositionName(outcome.disposition), " at step ",
                                   outcome.step.value(), ", staleness ", outcome.staleness,
                                   ", incarnation ", outcome.incarnation.value());
  if (outcome.first_disposition.has_value()) {
    absl::StrAppend(&words, ", first ", DispositionName(*outcome.first_disposition));
  }
  return words;
}

std::string Words(const PushVerdict& verdict) {
  if (verdict.answered) return Words(verdict.outcome);
  return verdict.goes_on() ? "may go on" : std::string(ReasonName(verdict.reason));
}

bool operator==(const PullVerdict& a, const PullVerdict& b) {
  return a.reason == b.reason && (a.reason != Reason::kNone || a.step == b.step);
}

std::string Words(const PullVerdict& verdict) {
  if (verdict.reason != Reason::kNone) return std::string(ReasonName(verdict.reason));
  return absl::StrCat("the parameters of step ", verdict.step);
}

std::string Words(absl::Span<const float> values) {
  std::string words;
  for (const float value : values) absl::StrAppendFormat(&words, "%.9g ", value);
  return words;
}

}  // namespace sluice
