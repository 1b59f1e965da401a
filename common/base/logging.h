// Sets up glog, which writes the log to stderr.

#ifndef SLUICE_COMMON_BASE_LOGGING_H_
#define SLUICE_COMMON_BASE_LOGGING_H_

namespace sluice {

// Called by mains. Does nothing if the program has set glog up itself.
void InitLogging();

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_LOGGING_H_
