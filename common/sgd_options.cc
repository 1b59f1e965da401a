#include "common/sgd_options.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/error.h"

namespace sluice {
namespace {

struct NamedOption {
  const char* name;
  double SgdOptions::*value;
};

constexpr NamedOption kNumbers[] = {
    {"learning_rate", &SgdOptions::learning_rate},
    {"momentum", &SgdOptions::momentum},
    {"dampening", &SgdOptions::dampening},
    {"weight_decay", &SgdOptions::weight_decay},
};

absl::Status Differs(absl::string_view name, absl::string_view job, absl::string_view worker) {
  return MakeError(
      Reason::kOptimizerMismatch,
      absl::StrCat("this worker's optimizer has ", name, " ", worker, ", the job's has ", job,
                   "; start every worker with the same options"));
}

}  // namespace

absl::Status SgdOptions::Validate() const {
  for (const NamedOption& option : kNumbers) {
    const double value = this->*option.value;
    // Dampening alone may be negative, as in torch::optim::SGD.
    const bool sign_ok = value >= 0 || option.value == &SgdOptions::dampening;
    if (std::isfinite(value) && sign_ok) continue;
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("SGD's ", option.name, " is ", value,
                                  ", expected a finite number that is not negative"));
  }
  if (nesterov && (momentum <= 0 || dampening != 0)) {
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("Nesterov needs momentum above 0 and dampening 0, found ",
                                  momentum, " and ", dampening));
  }
  return absl::OkStatus();
}

absl::Status CheckSameOptimizer(const SgdOptions& job, const SgdOptions& worker) {
  for (const NamedOption& option : kNumbers) {
    const double ours = job.*option.value;
    const double theirs = worker.*option.value;
    if (ours == theirs) continue;
    const int digits = absl::StrCat(ours) == absl::StrCat(theirs) ? 17 : 6;  // to tell them apart
    return Differs(option.name, absl::StrFormat("%.*g", digits, ours),
                   absl::StrFormat("%.*g", digits, theirs));
  }
  if (job.nesterov == worker.nesterov) return absl::OkStatus();
  return Differs("nesterov", job.nesterov ? "on" : "off", worker.nesterov ? "on" : "off");
}

}  // namespace sluice
