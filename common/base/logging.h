// Sets up glog, which writes the log to stderr.

#ifndef SLUICE_COMMON_BASE_LOGGING_H_
#define SLUICE_COMMON_BASE_LOGGING_H_

namespace sluice {

// Called by mains. Leaves glog alone if the program has set it up itself. Afterwards a write to a
// file that is as large as the process may make it (ulimit -f) fails, as on a full disk: the signal
// SIGXFSZ, which would end the process, is ignored.
void InitLogging();

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_LOGGING_H_
