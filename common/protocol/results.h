// Workers and observers report these about the job.

#ifndef SLUICE_COMMON_PROTOCOL_RESULTS_H_
#define SLUICE_COMMON_PROTOCOL_RESULTS_H_

#include <map>
#include <string>

#include "common/base/ids.h"

namespace sluice {

// By name: {"test accuracy", 0.9044}.
using Results = std::map<std::string, double>;

// They belong to the parameters of one step, while the job trains.
struct StepMeasurement {
  Step step;
  Results results;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_RESULTS_H_
