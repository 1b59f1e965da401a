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

// Externally synchronized. Needs Linux 5.3. A wait blocks until the process acts; its limit is
// there to end a test that hangs, so it may be generous. What a process writes is read during waits
// only: one that nobody waits for stops once it has filled its pipe (64 KiB).
class Process {
 public:
  using Environment = std::map<std::string, std::string>;
  static constexpr absl::Duration kPatience = absl::Seconds(30);

  // Starts `argv`, whose first word is a path or a name in $PATH, in a session of its own. Its
  // environment is this process's with `extra` on top; its input is empty; all signals have their
  // default action. NOT_FOUND if there is no such program.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const std::vector<std::string>& argv,
                                                        const Environment& extra = {});

  // Kills (SIGKILL) the process and all it has started, and waits until they are gone: its whole
  // session, so that mpirun's ranks are among them, which form process groups of their own.
  ~Process();

  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }

  // Sends `signal` to the process alone. Without effect once it has ended.
  void Signal(int signal);

  // Waits for the process's end: its exit status, or −n if signal n ended it. Its whole output has
  // been read by then. DEADLINE_EXCEEDED, with the output, after `limit`. May be repeated.
  absl::StatusOr<int> Wait(absl::Duration limit = kPatience);

  // Waits for a line, among those written already and those to come, in which `regex` (POSIX
  // extended, as gtest's) is found. Returns what its first group matched, or the line if it has
  // none. With the output: DEADLINE_EXCEEDED after `limit`, FAILED_PRECONDITION if the process
  // ended without such a line.
  absl::StatusOr<std::string> WaitForOutput(const std::string& regex,
                                            absl::Duration limit = kPatience);

  // What it wrote to stdout and stderr, in the order of writing, as far as waits have read it.
  const std::string& output() const { return output_; }

 private:
  class Deadline;

  Process(pid_t pid, int pipe, int pidfd);

  bool Advance(const Deadline& deadline);
  void ReadOutput();
  int ExitStatus() const;

  const pid_t pid_;  // reaped by the destructor only, so that the number stays ours
  const int pipe_;   // the end to read from
  const int pidfd_;  // readable once the process has ended
  const size_t pipe_capacity_;
  bool pipe_open_ = true;  // somebody may still write
  bool ended_ = false;
  std::string output_;
};

// Where the file or binary `root_relative` of a test's `data` lies:
// RunfilePath("server/sluice_server"). Outside of a test, where `bazel run` starts a program:
// relative to the working directory.
std::string RunfilePath(absl::string_view root_relative);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_PROCESS_H_
