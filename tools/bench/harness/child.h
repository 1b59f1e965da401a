// A process that the measuring process starts and ends.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_CHILD_H_
#define SLUICE_TOOLS_BENCH_HARNESS_CHILD_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice::bench {

// The descriptors that become the child's stdin and stdout. They still belong to the caller.
struct Streams {
  int input = -1;   // −1: an empty stdin
  int output = -1;  // −1: the stderr of this process, since its stdout is for the table
};

// Externally synchronized.
class Child {
 public:
  // Starts `argv`, whose first word is a path or a name in $PATH. Errors contain `name`.
  static absl::StatusOr<std::unique_ptr<Child>> Start(const std::string& name,
                                                      std::vector<std::string> argv,
                                                      const Streams& streams);

  // Sends SIGTERM and waits for the end of the child, unless Wait() was called before.
  ~Child();

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Must not be called after Wait().
  pid_t pid() const { return pid_; }

  // Waits until the child ends. Returns an error unless its exit status is 0. May be called once.
  absl::Status Wait();

 private:
  Child(const std::string& name, pid_t pid) : name_(name), pid_(pid) {}

  const std::string name_;
  pid_t pid_;  // 0: Wait() was called
};

// Returns whether the command ends with exit status 0. Its output is thrown away.
bool Succeeds(const std::vector<std::string>& argv);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_CHILD_H_
