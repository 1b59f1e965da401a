// The programs as a user starts them by hand, and what tests of them share.

#ifndef SLUICE_TESTS_TESTING_PROCESS_PROGRAMS_H_
#define SLUICE_TESTS_TESTING_PROCESS_PROGRAMS_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/security/credentials_source.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"

namespace sluice {

// Patience with a whole job on a busy machine.
inline constexpr absl::Duration kJob = absl::Minutes(2);

// A new file or folder of this test's own.
std::string TestPath(const std::string& name);

// `words`, then `flags`.
Words With(Words words, const Words& flags);

// sluice_server with those flags.
Words ServerProgram(const Words& flags = {});

Words TlsFlags(const TlsFiles& files);

// A server that was started by hand, on a port that the system chose.
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

// Runs a program to its end, which is to have `code`, and gives what it said.
std::string OutputOf(const Words& argv, int code);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_PROGRAMS_H_
