// The results that workers and observers report: while the job trains, and for the closing table
// when they leave. Their number and their names are bounded, because they are kept as long as the
// server runs.

#ifndef SLUICE_SERVER_STATE_JOB_RESULTS_H_
#define SLUICE_SERVER_STATE_JOB_RESULTS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "common/protocol/protocol_types.h"

namespace sluice {

// BAD_ARGUMENT if it is of a step that the server has not reached, has too many results, or one
// with an empty or too long name or a number that is not finite.
absl::Status CheckMeasurement(const StepMeasurement& measurement, Step reached);

// Externally synchronized.
class JobResults {
 public:
  static constexpr size_t kMostOfCall = 16;  // results of one Leave
  static constexpr size_t kMost = 256;       // results of the job
  static constexpr size_t kMostNameBytes = 64;

  // Takes all of `results`, or none of them after an error. If a name has a result already, that
  // one stays. BAD_ARGUMENT if there are too many, or a name is empty or too long.
  absl::Status Add(const Results& results);

  const Results& all() const { return all_; }

 private:
  absl::Status Check(const Results& results) const;

  Results all_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_JOB_RESULTS_H_
