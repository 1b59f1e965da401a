// Lines for the operator, on stderr, by glog.

#ifndef SLUICE_COMMON_BASE_LOGGING_H_
#define SLUICE_COMMON_BASE_LOGGING_H_

namespace sluice {

// Sends glog's lines to stderr. Does nothing if the program has set glog up itself.
void InitLogging();

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_LOGGING_H_
