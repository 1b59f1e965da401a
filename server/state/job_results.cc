#include "server/state/job_results.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status BadResults(absl::string_view found, size_t most) {
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("field results has ", found, ", expected at most ", most));
}

}  // namespace

absl::Status JobResults::Add(const Results& results) {
  const absl::Status valid = Check(results);
  if (valid.ok()) all_.insert(results.begin(), results.end());
  return valid;
}

absl::Status JobResults::Check(const Results& results) const {
  if (results.size() > kMostOfCall) {
    return BadResults(absl::StrCat(results.size(), " entries"), kMostOfCall);
  }
  size_t added = 0;
  for (const auto& result : results) {
    const std::string& name = result.first;
    if (name.empty()) return MakeError(Reason::kBadArgument, "field results has an empty name");
    if (name.size() > kMostNameBytes) {
      return BadResults(absl::StrCat("a name of ", name.size(), " bytes"), kMostNameBytes);
    }
    if (all_.count(name) == 0) ++added;
  }
  if (all_.size() + added <= kMost) return absl::OkStatus();
  return BadResults(absl::StrCat(added, " new names beside ", all_.size(), " of this job"), kMost);
}

}  // namespace sluice
