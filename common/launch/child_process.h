// Functions that starting and watching a process need and the C library lacks.

#ifndef SLUICE_COMMON_LAUNCH_CHILD_PROCESS_H_
#define SLUICE_COMMON_LAUNCH_CHILD_PROCESS_H_

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace sluice {

// Pointers into `words` with a null at the end, as exec() expects.
inline std::vector<char*> ExecWords(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Returns a descriptor that becomes readable when the process ends; the caller closes it. Negative,
// with errno, on failure. (glibc has this function since 2.36 only.)
inline int OpenPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_CHILD_PROCESS_H_
