// A process that the measuring one has started.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_CHILD_H_
#define SLUICE_TOOLS_BENCH_HARNESS_CHILD_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice::bench {

// What becomes of the child's stdin and stdout: descriptors, which stay the caller's.
struct Streams {
  int input = -1;   // −1: empty
  int output = -1;  // −1: this process's stderr, since stdout is for the table
};

// Externally synchronized.
class Child {
 public:
  // Starts `argv`, whose first word is a path or a name in $PATH. `name` is for errors.
  static absl::StatusOr<std::unique_ptr<Child>> Start(const std::string& name,
                                                      std::vector<std::string> argv,
                                                      const Streams& streams);

  // Asks it to end (SIGTERM) and waits, unless Wait() has been called.
  ~Child();

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Not after Wait().
  pid_t pid() const { return pid_; }

  // Waits for its end; an error unless it was with 0. Once.
  absl::Status Wait();

 private:
  Child(const std::string& name, pid_t pid) : name_(name), pid_(pid) {}

  const std::string name_;
  pid_t pid_;  // 0: waited for
};

// Whether the command ends with 0. Nothing of what it says is seen.
bool Succeeds(const std::vector<std::string>& argv);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_CHILD_H_
