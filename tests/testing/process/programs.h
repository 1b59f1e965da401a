// Starts Sluice's programs as a user does by hand. Shared by the tests of whole programs.

#ifndef SLUICE_TESTS_TESTING_PROCESS_PROGRAMS_H_
#define SLUICE_TESTS_TESTING_PROCESS_PROGRAMS_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/security/credentials_source.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"

namespace sluice {

// How long a test waits for a whole job on a busy machine.
inline constexpr absl::Duration kJob = absl::Minutes(2);

// A path for a file or folder that only the current test uses. Creates nothing.
std::string TestPath(const std::string& name);

// `words`, then `flags`.
Words With(Words words, const Words& flags);

// The command line of sluice_server with `flags`.
Words ServerProgram(const Words& flags = {});

Words TlsFlags(const TlsFiles& files);

// A server that was started without mpirun, on a free port.
class Standalone {
 public:
  explicit Standalone(const Words& flags);

  const std::string& address() const { return address_; }
  std::string flag() const { return "--server=" + address_; }
  Process& process() { return *process_; }

 private:
  std::unique_ptr<Process> process_;
  std::string address_;
};

// Runs a program to its end, expects its exit code to be `code`, and returns its output.
std::string OutputOf(const Words& argv, int code);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_PROGRAMS_H_
