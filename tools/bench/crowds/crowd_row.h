// Measures one row: a real server, and a crowd of real workers.

#ifndef SLUICE_TOOLS_BENCH_CROWDS_CROWD_ROW_H_
#define SLUICE_TOOLS_BENCH_CROWDS_CROWD_ROW_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/bench/crowds/crowd_result.h"

namespace sluice::bench {

// What all rows have in common. Times are in seconds.
struct CrowdSetup {
  std::string root = ".";  // the folder that holds server/sluice_server and the workers' program
  uint32_t processes = 4;  // that hold the workers
  // Measured, and again until the workers have made 10 rounds on average, and once more after some
  // were killed.
  double seconds = 10;
  double idle = 5;     // with all workers joined and none pushing
  double warm_up = 1;  // that does not count
  double compute = 0;  // of a worker before each push
  double lease = 10;
  bool tcp = false;
  bool shared_memory = false;
  bool two_calls = false;
  uint32_t kill = 0;  // workers that are killed after the measured time
};

// Lets this process and those that it starts open as many files as a row of so many workers needs.
// FAILED_PRECONDITION if the system's hard limit is smaller.
absl::Status AllowFiles(uint32_t workers);

// Starts, measures and ends the processes of a row. `setup.kill` is less than `of.workers`.
absl::StatusOr<CrowdResult> MeasureRow(const CrowdCase& of, const CrowdSetup& setup);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CROWDS_CROWD_ROW_H_
