#include "common/optimizer_options.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/error.h"

namespace sluice {
namespace {

struct NamedNumber {
  const char* name;
  double value;
};

std::vector<NamedNumber> NumbersOf(const SgdOptions& sgd) {
  return {{"learning_rate", sgd.learning_rate},
          {"momentum", sgd.momentum},
          {"dampening", sgd.dampening},
          {"weight_decay", sgd.weight_decay}};
}

std::vector<NamedNumber> NumbersOf(const AveragingOptions& averaging) {
  return {{"moving_rate", averaging.moving_rate},
          {"local_steps", static_cast<double>(averaging.local_steps)}};
}

const char* NameOf(const OptimizerOptions& options) {
  return std::holds_alternative<SgdOptions>(options) ? "sgd" : "averaging";
}

absl::Status Differs(absl::string_view name, absl::string_view job, absl::string_view worker) {
  return MakeError(
      Reason::kOptimizerMismatch,
      absl::StrCat("this worker's optimizer has ", name, " ", worker, ", the job's has ", job,
                   "; start every worker with the same options"));
}

absl::Status CheckSameNumbers(const std::vector<NamedNumber>& job,
                              const std::vector<NamedNumber>& worker) {
  for (size_t i = 0; i < job.size(); ++i) {
    const double ours = job[i].value;
    const double theirs = worker[i].value;
    if (ours == theirs) continue;
    const int digits = absl::StrCat(ours) == absl::StrCat(theirs) ? 17 : 6;  // to tell them apart
    return Differs(job[i].name, absl::StrFormat("%.*g", digits, ours),
                   absl::StrFormat("%.*g", digits, theirs));
  }
  return absl::OkStatus();
}

absl::Status CheckSame(const SgdOptions& job, const SgdOptions& worker) {
  const absl::Status numbers = CheckSameNumbers(NumbersOf(job), NumbersOf(worker));
  if (!numbers.ok() || job.nesterov == worker.nesterov) return numbers;
  return Differs("nesterov", job.nesterov ? "on" : "off", worker.nesterov ? "on" : "off");
}

absl::Status CheckSame(const AveragingOptions& job, const AveragingOptions& worker) {
  return CheckSameNumbers(NumbersOf(job), NumbersOf(worker));
}

}  // namespace

absl::Status SgdOptions::Validate() const {
  for (const NamedNumber& option : NumbersOf(*this)) {
    // Dampening alone may be negative, as in torch::optim::SGD.
    const bool sign_ok = option.value >= 0 || absl::string_view(option.name) == "dampening";
    if (std::isfinite(option.value) && sign_ok) continue;
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("SGD's ", option.name, " is ", option.value,
                                  ", expected a finite number that is not negative"));
  }
  if (nesterov && (momentum <= 0 || dampening != 0)) {
    return MakeError(Reason::kBadOptimizer,
                     absl::StrCat("Nesterov needs momentum above 0 and dampening 0, found ",
                                  momentum, " and ", dampening));
  }
  return absl::OkStatus();
}

absl::Status AveragingOptions::Validate() const {
  if (!(moving_rate > 0 && moving_rate <= 1)) {
    return MakeError(Reason::kBadOptimizer, absl::StrCat("averaging's moving_rate is ", moving_rate,
                                                         ", expected more than 0, at most 1"));
  }
  if (local_steps > 0) return absl::OkStatus();
  return MakeError(Reason::kBadOptimizer, "averaging's local_steps is 0, expected at least 1");
}

absl::Status Validate(const OptimizerOptions& options) {
  return std::visit([](const auto& known) { return known.Validate(); }, options);
}

absl::Status CheckSameOptimizer(const OptimizerOptions& job, const OptimizerOptions& worker) {
  if (job.index() != worker.index()) {
    return MakeError(Reason::kOptimizerMismatch,
                     absl::StrCat("this worker's optimizer is ", NameOf(worker), ", the job's is ",
                                  NameOf(job), "; start every worker with the same options"));
  }
  return std::visit(
      [&worker](const auto& ours) {
        return CheckSame(ours, std::get<std::decay_t<decltype(ours)>>(worker));
      },
      job);
}

}  // namespace sluice
