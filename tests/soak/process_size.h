// Reads how much memory and how many file descriptors and threads a process has.

#ifndef SLUICE_TESTS_SOAK_PROCESS_SIZE_H_
#define SLUICE_TESTS_SOAK_PROCESS_SIZE_H_

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace sluice {

struct ProcessSize {
  double rss_mb = 0;  // resident memory, shared memory included; MB are 10^6 bytes
  double file_descriptors = 0;
  double threads = 0;
};

// As the kernel tells it. NOT_FOUND if there is no such process, or it is another user's.
absl::StatusOr<ProcessSize> SizeOf(pid_t pid);

}  // namespace sluice

#endif  // SLUICE_TESTS_SOAK_PROCESS_SIZE_H_
