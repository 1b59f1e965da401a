// What a worker reports about the job when it leaves.

#ifndef SLUICE_COMMON_PROTOCOL_RESULTS_H_
#define SLUICE_COMMON_PROTOCOL_RESULTS_H_

#include <map>
#include <string>

namespace sluice {

// By name: {"test accuracy", 0.9044}.
using Results = std::map<std::string, double>;

}  // namespace sluice

#endif  // SLUICE_COMMON_PROTOCOL_RESULTS_H_
