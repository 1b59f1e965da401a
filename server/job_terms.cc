#include "server/job_terms.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace sluice {

absl::Status JobTerms::Propose(const OptimizerOptions& optimizer, double learning_rate) {
  if (!(std::isfinite(learning_rate) && learning_rate >= 0)) {
    return MakeError(Reason::kBadArgument, absl::StrCat("the learning rate is ", learning_rate,
                                                        ", expected a finite number, 0 or more"));
  }
  if (std::holds_alternative<AveragingOptions>(optimizer)) {
    return MakeError(Reason::kBadArgument,
                     "the workers of this job take their steps themselves, with learning rates of "
                     "their own; there is none to set here");
  }
  next_learning_rate_ = learning_rate;
  return absl::OkStatus();
}

bool JobTerms::Adopt() {
  if (next_learning_rate_.has_value()) learning_rate_ = next_learning_rate_;
  next_learning_rate_.reset();
  if (!next_policy_.has_value()) return false;
  policy_ = *next_policy_;
  next_policy_.reset();
  return true;
}

double JobTerms::LearningRate(const OptimizerOptions& optimizer, Step step) const {
  const auto* const sgd = std::get_if<SgdOptions>(&optimizer);
  if (sgd == nullptr) return 0;
  return learning_rate_.value_or(sgd->learning_rate) * schedule_.FactorAt(step);
}

}  // namespace sluice
