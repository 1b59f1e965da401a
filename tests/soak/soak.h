// A long run of one server whose workers come and go, and the resources that it used meanwhile.

#ifndef SLUICE_TESTS_SOAK_SOAK_H_
#define SLUICE_TESTS_SOAK_SOAK_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/soak/flatness.h"

namespace sluice {

struct SoakOptions {
  absl::Duration length = absl::Hours(1);
  absl::Duration interval = absl::Minutes(1);      // of the measurements
  absl::Duration change_every = absl::Seconds(5);  // between two workers that go
  uint32_t workers = 8;       // beside the one that stays, and tells how long its rounds take
  uint32_t elements = 16384;  // of the model
  double batch_time = 0.02;   // seconds that a worker waits before each push
  uint64_t seed = 1;          // of who goes, and of the attacks
  // Hostile peers attack the server all the time, beside the workers.
  bool hostile = false;

  size_t measurements() const { return static_cast<size_t>(length / interval); }
};

struct SoakReport {
  // The series of the server's resident memory, file descriptors and threads, and of the p99 of the
  // rounds of the worker that stays, whatever the mode makes them wait for.
  std::vector<Course> courses;
  std::vector<double> load;  // the machine's, of the minute before each measurement; not judged
  uint64_t steps = 0;
  uint64_t pushes = 0;  // that counted
  uint64_t joined = 0;  // workers, the one that stays included
  uint64_t left = 0;
  uint64_t killed = 0;
  uint64_t attacks = 0;  // of hostile peers
};

// Runs it in a directory of its own, with checkpoints and the journal, and writes a line to `out`
// at each interval. An error if a worker, the server or the
// hostile peers end in another way than they were asked to (the latter do if they are not
// answered), if the counters do not balance, or if the parameters are not exactly what the pushes
// that counted make of them.
absl::StatusOr<SoakReport> RunSoak(const SoakOptions& options, std::ostream& out);

}  // namespace sluice

#endif  // SLUICE_TESTS_SOAK_SOAK_H_
