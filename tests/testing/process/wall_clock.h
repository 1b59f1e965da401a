// A wall clock that a test sets, for programs that it starts. The machine's own clock, and the
// programs' monotonic clocks, are left alone.

#ifndef SLUICE_TESTS_TESTING_PROCESS_WALL_CLOCK_H_
#define SLUICE_TESTS_TESTING_PROCESS_WALL_CLOCK_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "tests/testing/process/process.h"

namespace sluice {

// Externally synchronized. The test has //tests/testing/process:moved_clock.so among its data.
class WallClock {
 public:
  // Shows the true time. `path` is that of a new file, to which the clock's programs listen.
  explicit WallClock(const std::string& path);
  ~WallClock();

  WallClock(const WallClock&) = delete;
  WallClock& operator=(const WallClock&) = delete;

  // For Process::Start(): the program, and those that it starts, have this clock.
  Process::Environment environment() const;

  // From now on the clock is that much ahead of the true time; behind it, if negative.
  void Set(absl::Duration ahead);

 private:
  const std::string path_;
  int64_t* ahead_;  // nanoseconds, in memory that is the file's
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_WALL_CLOCK_H_
