// Runs this process's program in a child, and again when the child dies. mpirun does not do that:
// it ends a whole job with the first rank that dies.
//
// The child is the same program with the same command line. What else it must know it is told
// through a socket that it inherits, so that no secret is in a command line, the environment or a
// file. It dies with its supervisor. Counting restarts is torchrun's way (PyTorch Elastic's
// max_restarts).
//
// For one thread, which must be the only one of its process that takes signals.

#ifndef SLUICE_COMMON_LAUNCH_SUPERVISOR_H_
#define SLUICE_COMMON_LAUNCH_SUPERVISOR_H_

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/file_descriptor.h"

namespace sluice {

// One end of the socket between a supervisor and its program. Messages arrive whole.
class SupervisorSocket {
 public:
  explicit SupervisorSocket(FileDescriptor end) : end_(std::move(end)) {}

  // The end that this process inherited; none if it has no supervisor. Call it once, while this
  // process has one thread: it is taken out of the environment.
  static absl::optional<SupervisorSocket> Inherited();

  // UNAVAILABLE if the other side has ended.
  absl::Status Send(absl::string_view message) const;
  // Waits for the next message.
  absl::StatusOr<std::string> Receive() const;

 private:
  FileDescriptor end_;
};

class Supervisor {
 public:
  // Runs the program for the first time. `name` is for the log: "rank 2". UNAVAILABLE says what the
  // system refused.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Start(std::string name);

  // Kills the program if it still runs.
  ~Supervisor();

  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // To the program that runs now.
  const SupervisorSocket& socket() const { return socket_; }

  // Waits until the program has ended for good, and passes on the signals that ask this process to
  // end. A program that crashed, was killed or failed is run again, at most `max_restarts` times,
  // and told `brief`, its first message; at once, or after a second if it has not lived that long.
  // Not run again: one that a signal asked to end (SIGTERM, SIGINT, SIGHUP, SIGQUIT), one that
  // ended with 0 or with a code for which `is_final`. Returns the exit code of the last one, or
  // 128 + the signal that ended it.
  int Run(const std::string& brief, uint32_t max_restarts, bool (*is_final)(int code));

 private:
  explicit Supervisor(std::string name);

  absl::Status Spawn();
  void WaitForEnd();
  void Pause();
  void Watch(absl::Duration limit);

  const std::string name_;
  sigset_t outer_mask_;
  SupervisorSocket socket_{FileDescriptor()};
  FileDescriptor stop_signals_;
  pid_t pid_ = 0;         // 0: none runs
  FileDescriptor ended_;  // its pidfd
  absl::Time spawned_;
  uint32_t runs_ = 0;
  int status_ = 0;         // of the last that ended, as waitpid() tells it
  bool stopping_ = false;  // this process was asked to end
};

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_SUPERVISOR_H_
