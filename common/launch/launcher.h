// The process that launched this rank: mpirun, its daemon on another node, or srun's.

#ifndef SLUICE_COMMON_LAUNCH_LAUNCHER_H_
#define SLUICE_COMMON_LAUNCH_LAUNCHER_H_

#include <sys/types.h>

#include <cstdint>

#include "absl/types/optional.h"

namespace sluice {

// A value. Any thread may use it.
class Launcher {
 public:
  // The nearest process above this one that is no part of the rank, as a shell is that starts the
  // program. Absent if this process was started by hand, or if /proc does not tell.
  static absl::optional<Launcher> Find();

  pid_t pid() const { return pid_; }

  // How many processes it has started on this node that still run. 0 if the system does not tell.
  uint32_t Running() const;

 private:
  explicit Launcher(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

// Ends this process when its launcher has ended. A launcher that is killed by SIGKILL tells its
// ranks nothing. Then this process gets SIGTERM, as the launcher would have sent it: a server
// drains and saves, and a supervisor passes it on.
//
// Until NoteRanksMet() it also ends this process if all other ranks have ended, for which MPI would
// wait for ever. It knows that only if Open MPI has started all ranks on this node.
//
// Starts a thread that receives no signals and lives as long as the process. Does nothing without a
// launcher. Call it once.
void EndWithLauncher();

// All ranks have initialised MPI.
void NoteRanksMet();

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_LAUNCHER_H_
