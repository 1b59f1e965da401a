// Follows the size of the parameters from step to step, on a sample of them.

#ifndef SLUICE_SERVER_AGGREGATION_PARAMETER_NORMS_H_
#define SLUICE_SERVER_AGGREGATION_PARAMETER_NORMS_H_

#include <utility>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "server/aggregation/parameter_sample.h"

namespace sluice {

// The norms of a sample of the parameters, before a step and after it.
struct StepNorms {
  double before = 0;
  double after = 0;
};

// Externally synchronized.
class ParameterNorms {
 public:
  explicit ParameterNorms(ParameterSample sample) : sample_(std::move(sample)) {}

  // A step has made `made` of `current`, which are those that the step before made.
  void Note(absl::Span<const float> current, absl::Span<const float> made) {
    const double before = latest_.has_value() ? latest_->after : sample_.Norm(current);
    latest_ = StepNorms{before, sample_.Norm(made)};
  }

  // Returns the norms of the latest step. A call of Note() comes before.
  const StepNorms& latest() const { return *latest_; }

 private:
  const ParameterSample sample_;
  absl::optional<StepNorms> latest_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_PARAMETER_NORMS_H_
