#include "tests/testing/outcome.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::Field;

OutcomeMatcher OutcomeIs(Disposition disposition, uint64_t step, uint64_t staleness,
                         absl::optional<Disposition> first = absl::nullopt) {
  return IsOkAndHolds(AllOf(Field("disposition", &PushOutcome::disposition, disposition),
                            Field("step", &PushOutcome::step, Step(step)),
                            Field("incarnation", &PushOutcome::incarnation, Incarnation(1)),
                            Field("staleness", &PushOutcome::staleness, staleness),
                            Field("first_disposition", &PushOutcome::first_disposition, first)));
}

}  // namespace

OutcomeMatcher Accepted(uint64_t step, uint64_t staleness) {
  return OutcomeIs(Disposition::kAccepted, step, staleness);
}

OutcomeMatcher Applied(uint64_t step, uint64_t staleness) {
  return OutcomeIs(Disposition::kApplied, step, staleness);
}

OutcomeMatcher Stale(uint64_t step, uint64_t staleness) {
  return OutcomeIs(Disposition::kStaleDropped, step, staleness);
}

OutcomeMatcher Skipped(uint64_t step, uint64_t staleness) {
  return OutcomeIs(Disposition::kSkipped, step, staleness);
}

OutcomeMatcher Repeated(Disposition first, uint64_t step, uint64_t staleness) {
  return OutcomeIs(Disposition::kDuplicate, step, staleness, first);
}

std::string Columns(const PushCounters& counters) {
  std::vector<std::string> columns;
  const auto add = [&columns](uint64_t count, const char* name) {
    if (count > 0) columns.push_back(absl::StrCat(count, " ", name));
  };
  add(counters.accepted, "accepted");
  add(counters.stale, "stale");
  add(counters.skipped, "skipped");
  add(counters.duplicate, "duplicate");
  add(counters.rejected, "rejected");
  add(counters.aborted, "aborted");
  add(counters.in_progress, "in progress");
  return absl::StrCat(counters.received, " received: ", absl::StrJoin(columns, ", "));
}

void PrintTo(Disposition disposition, std::ostream* out) {
  *out << std::string(DispositionName(disposition));
}

void PrintTo(const PushOutcome& outcome, std::ostream* out) {
  PrintTo(outcome.disposition, out);
  *out << " at step " << outcome.step << ", staleness " << outcome.staleness << ", incarnation "
       << outcome.incarnation;
  if (outcome.first_disposition.has_value()) {
    *out << ", first " << std::string(DispositionName(*outcome.first_disposition));
  }
}

}  // namespace sluice
