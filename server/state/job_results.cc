#include "server/state/job_results.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status BadResults(absl::string_view field, absl::string_view found, size_t most) {
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("field ", field, " has ", found, ", expected at most ", most));
}

// What is reported in one call.
absl::Status CheckResults(const Results& results, absl::string_view field) {
  constexpr size_t kMostNameBytes = JobResults::kMostNameBytes;
  if (results.size() > JobResults::kMostOfCall) {
    return BadResults(field, absl::StrCat(results.size(), " entries"), JobResults::kMostOfCall);
  }
  for (const auto& result : results) {
    const std::string& name = result.first;
    if (name.empty()) {
      return MakeError(Reason::kBadArgument, absl::StrCat("field ", field, " has an empty name"));
    }
    if (name.size() > kMostNameBytes) {
      return BadResults(field, absl::StrCat("a name of ", name.size(), " bytes"), kMostNameBytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckMeasurement(const StepMeasurement& measurement, Step reached) {
  if (measurement.step > reached) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("field measurement.step is ", measurement.step.value(),
                                  ", but the server is at step ", reached.value()));
  }
  for (const auto& result : measurement.results) {
    if (!std::isfinite(result.second)) {
      return MakeError(Reason::kBadArgument,
                       "field measurement.results has a number that is not finite");
    }
  }
  return CheckResults(measurement.results, "measurement.results");
}

absl::Status JobResults::Add(const Results& results) {
  const absl::Status valid = Check(results);
  if (valid.ok()) all_.insert(results.begin(), results.end());
  return valid;
}

absl::Status JobResults::Check(const Results& results) const {
  const absl::Status names = CheckResults(results, "results");
  if (!names.ok()) return names;
  size_t added = 0;
  for (const auto& result : results) {
    if (all_.count(result.first) == 0) ++added;
  }
  if (all_.size() + added <= kMost) return absl::OkStatus();
  return BadResults("results",
                    absl::StrCat(added, " new names beside ", all_.size(), " of this job"), kMost);
}

}  // namespace sluice
