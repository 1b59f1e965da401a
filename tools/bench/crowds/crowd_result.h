// What one row of the crowd benchmark has measured.

#ifndef SLUICE_TOOLS_BENCH_CROWDS_CROWD_RESULT_H_
#define SLUICE_TOOLS_BENCH_CROWDS_CROWD_RESULT_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"

namespace sluice::bench {

// The mode of a row without Sluice: a round is a call of gRPC with the vector's
// bytes each way.
inline constexpr char kBareMode[] = "bare";

struct CrowdCase {
  uint64_t bytes = 4;  // of the vector: 4 for each float32
  uint32_t workers = 1;
  std::string mode;  // of the server, or kBareMode
};

// The server with all workers joined and none pushing.
struct IdleCost {
  double bytes_per_worker = 0;    // that became resident since no worker had connected
  double wakeups_per_second = 0;  // of the server, for each worker
  double cpu_per_second = 0;      // of the server, for each worker; in seconds
};

// After some workers were killed at once.
struct KillCost {
  uint32_t killed = 0;
  double eviction_seconds = 0;  // until the server listed all of them as evicted
  double rate_before = 0;       // rounds of the others in a second, until then
  double rate_after = 0;        // and after that
  uint64_t least_after = 0;     // rounds of the worker that made fewest after that
};

// A round is one push and one pull of one worker.
struct CrowdResult {
  CrowdCase of;
  double join_seconds = 0;  // from the start of the first Join to the end of the last
  IdleCost idle;
  uint64_t rounds = 0;  // of all workers together, in the measured time
  double seconds = 0;   // the measured time
  double server_cpu_seconds = 0;
  double workers_cpu_seconds = 0;  // of all workers together
  double median_seconds = 0;       // of a round
  double p99_seconds = 0;          // of a round
  uint64_t server_peak_bytes = 0;
  absl::optional<KillCost> kill;
  std::string wrong;  // what does not add up; empty if all does
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CROWDS_CROWD_RESULT_H_
