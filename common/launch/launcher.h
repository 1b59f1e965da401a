// The process that launched this rank: mpirun, or the daemon of mpirun or srun on this node.

#ifndef SLUICE_COMMON_LAUNCH_LAUNCHER_H_
#define SLUICE_COMMON_LAUNCH_LAUNCHER_H_

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"

namespace sluice {

// A plain value. Any thread may use it.
class Launcher {
 public:
  // Finds the launcher: the nearest ancestor of this process that does not belong to the rank. A
  // shell that the launcher runs, and that runs the program, belongs to the rank. Absent if this
  // process was started by hand, or if /proc does not tell.
  static absl::optional<Launcher> Find();

  pid_t pid() const { return pid_; }

  // How many of the processes that the launcher has started on this node still run. 0 if the system
  // does not tell.
  uint32_t Running() const;

  // Whether a rank that the launcher has started on this node runs no more. False if the system
  // does not tell.
  bool HasEnded(int rank) const;

 private:
  explicit Launcher(pid_t pid) : pid_(pid) {}

  std::vector<pid_t> Children() const;

  pid_t pid_;
};

// Ends this process when its launcher has ended. A launcher that is killed by SIGKILL cannot end
// its ranks. So this process sends SIGTERM to itself, as the launcher would have done: a server
// then drains and saves, and a supervisor passes the signal on.
//
// Before NoteRanksMet(), this process also ends when all other ranks have ended, because MPI would
// wait for them for ever. That works only if Open MPI has started all ranks on this node.
//
// Starts a thread that receives no signals and lives as long as the process. Does nothing if there
// is no launcher. Call it once.
void EndWithLauncher();

// All ranks have initialised MPI. From now on, this process may outlive the other ranks.
void NoteRanksMet();

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_LAUNCHER_H_
