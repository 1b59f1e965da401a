// A program that a test starts, watches and signals. It never outlives the test.
//
//   auto server = Process::Start({RunfilePath("server/sluice_server"), "--listen=127.0.0.1:0"});
//   ASSERT_TRUE(server.ok()) << server.status();
//   const auto port = (*server)->WaitForOutput("listening on 127.0.0.1:([0-9]+)");
//   ASSERT_TRUE(port.ok()) << port.status();
//   (*server)->Signal(SIGTERM);
//   EXPECT_THAT((*server)->Wait(), IsOkAndHolds(0));  // tests/testing/status.h

#ifndef SLUICE_TESTS_TESTING_PROCESS_PROCESS_H_
#define SLUICE_TESTS_TESTING_PROCESS_PROCESS_H_

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sluice {

// Externally synchronized. Needs Linux 5.3. The limit of a wait only ends a test that hangs, so it
// may be long. Output is read only during waits: if the test does not wait, the process blocks when
// its pipe is full (64 KiB).
class Process {
 public:
  using Environment = std::map<std::string, std::string>;
  static constexpr absl::Duration kPatience = absl::Seconds(120);

  // Starts `argv`, whose first word is a path or a name in $PATH, in a session of its own. Its
  // environment is this process's with `extra` on top; its input is empty; all signals have their
  // default action. NOT_FOUND if there is no such program.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const std::vector<std::string>& argv,
                                                        const Environment& extra = {});

  // Kills (SIGKILL) all processes of the session, and waits until they have ended. These are the
  // process and all that it has started, also mpirun's ranks, which have their own process groups.
  ~Process();

  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }

  // Sends `signal` to the process only, not to its children. Does nothing if it has ended.
  void Signal(int signal);

  // Waits until the process has ended and all its output was read. Returns its exit status, or −n
  // if signal n ended it. DEADLINE_EXCEEDED, with the output, after `limit`. May be called again.
  absl::StatusOr<int> Wait(absl::Duration limit = kPatience);

  // Waits for a line that contains `regex` (POSIX extended, as in gtest); lines that were written
  // earlier count, too. Returns what the first group matched, or the line if there is no group.
  // DEADLINE_EXCEEDED after `limit`; FAILED_PRECONDITION if the process ended without such a line.
  // Both errors include the output.
  absl::StatusOr<std::string> WaitForOutput(const std::string& regex,
                                            absl::Duration limit = kPatience);

  // The output to stdout and stderr that waits have read so far, in the order of writing.
  const std::string& output() const { return output_; }

 private:
  class Deadline;

  Process(pid_t pid, int pipe, int pidfd);

  bool Advance(const Deadline& deadline);
  void ReadOutput();
  int ExitStatus() const;

  const pid_t pid_;  // only the destructor reaps it, so that no other process gets the same id
  const int pipe_;   // the end to read from
  const int pidfd_;  // readable once the process has ended
  const size_t pipe_capacity_;
  bool pipe_open_ = true;  // a process may still write to it
  bool ended_ = false;
  std::string output_;
};

// The path of a file or binary in a test's `data`, for example RunfilePath("server/sluice_server").
// In a program that `bazel run` started, the path is relative to the working directory.
std::string RunfilePath(absl::string_view root_relative);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_PROCESS_H_
