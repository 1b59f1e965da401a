// Runs this process's program in a child process, and starts it again when it fails. mpirun cannot
// do that: it ends the whole job when one rank dies.
//
// The child has the same program and command line. The supervisor tells it the rest through a
// socket that the child inherits, so that no secret is in a command line, the environment or a
// file. The kernel kills the child if the supervisor dies. The limit of restarts is like PyTorch
// Elastic's max_restarts.
//
// Used by one thread. No other thread of the process may receive signals.

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

// One end of the socket between a supervisor and its program. It preserves message boundaries.
class SupervisorSocket {
 public:
  explicit SupervisorSocket(FileDescriptor end) : end_(std::move(end)) {}

  // The end that this process inherited; absent if it has no supervisor. Call it once, while this
  // process has one thread: it removes the descriptor's number from the environment.
  static absl::optional<SupervisorSocket> Inherited();

  // Whether Inherited() would return one.
  static bool IsInherited();

  // Sends one message. UNAVAILABLE if the other side has ended.
  absl::Status Send(absl::string_view message) const;
  // Waits for the next message. UNAVAILABLE if the other side has ended.
  absl::StatusOr<std::string> Receive() const;

  // Of a program: the job is over, so it has nothing to do. Whatever its exit code is, the
  // supervisor then takes it for 0.
  absl::Status SayJobIsOver() const;
  // Of a supervisor whose program has ended: whether that is what it said last.
  bool HeardJobIsOver() const;

 private:
  FileDescriptor end_;
};

class Supervisor {
 public:
  // A program that ran for less than this is started again only after a pause, because the cause of
  // its end probably still exists.
  static constexpr absl::Duration kShortLife = absl::Seconds(1);

  // Starts the program. `name` appears in the log: "rank 2". `short_life` is also the length of the
  // pause. UNAVAILABLE names the system call that failed.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Start(std::string name,
                                                           absl::Duration short_life = kShortLife);

  // Kills the program if it still runs.
  ~Supervisor();

  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // The socket to the program that runs now.
  const SupervisorSocket& socket() const { return socket_; }

  // Waits until the program has ended. Then starts it again, and sends it `brief` as the first
  // message. It does not start the program again if
  // - the program ended with 0, or with a code for which `is_final` returns true;
  // - the program has said that the job is over: then the code is 0;
  // - all calls together have started it again `max_restarts` times; or
  // - a signal has asked this process or the program to end: SIGTERM, SIGINT, SIGHUP or SIGQUIT.
  //   Such a signal to this process is passed on to the program.
  // If the program ran for less than `short_life`, pauses for that time before the restart. A
  // signal that asks this process to end also ends the pause.
  //
  // Returns nothing if the program runs again. Otherwise returns its exit code, or 128 + the number
  // of the signal that ended it.
  absl::optional<int> AwaitEnd(const std::string& brief, uint32_t max_restarts,
                               bool (*is_final)(int code));
  // Calls AwaitEnd() until the program does not run again. Returns its last code.
  int Run(const std::string& brief, uint32_t max_restarts, bool (*is_final)(int code));

 private:
  Supervisor(std::string name, absl::Duration short_life);

  absl::Status Spawn();
  void WaitForEnd();
  void Pause();
  void Watch(absl::Duration limit);

  const std::string name_;
  const absl::Duration short_life_;
  sigset_t outer_mask_;
  SupervisorSocket socket_{FileDescriptor()};
  FileDescriptor stop_signals_;
  pid_t pid_ = 0;         // 0: none runs
  FileDescriptor ended_;  // its pidfd
  absl::Time spawned_;
  uint32_t runs_ = 0;
  uint32_t restarts_ = 0;
  int status_ = 0;         // of the last program, from waitpid()
  bool stopping_ = false;  // a signal asked this process to end
};

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_SUPERVISOR_H_
