// Workers and observers report these about the job.

#ifndef SLUICE_COMMON_PROTOCOL_RESULTS_H_
#define SLUICE_COMMON_PROTOCOL_RESULTS_H_

#include <cstddef>
#include <map>
#include <string>

#include "common/base/ids.h"

namespace sluice {

// By name: {"test accuracy", 0.9044}.
using Results = std::map<std::string, double>;

inline constexpr size_t kMostFailureBytes = 256;

// How a session ends.
struct Farewell {
  Results results = {};
  // Why a worker cannot go on, in at most kMostFailureBytes; empty if it is done. A worker that has
  // failed counts as lost.
  std::string failure = {};
};

// They belong to the parameters of one step, while the job trains.
struct StepMeasurement {
  Step step;
  Results results;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_RESULTS_H_
