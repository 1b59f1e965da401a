// What starting and watching a process takes, and the C library lacks.

#ifndef SLUICE_COMMON_LAUNCH_CHILD_PROCESS_H_
#define SLUICE_COMMON_LAUNCH_CHILD_PROCESS_H_

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace sluice {

// Pointers into `words`, ended by a null, as exec wants them.
inline std::vector<char*> ExecWords(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A descriptor, the caller's to close, that can be read once the process has ended; negative, with
// errno, if there is none. glibc has it since 2.36 only.
inline int OpenPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_CHILD_PROCESS_H_
