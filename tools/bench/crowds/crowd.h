// All workers of a row, in several processes.

#ifndef SLUICE_TOOLS_BENCH_CROWDS_CROWD_H_
#define SLUICE_TOOLS_BENCH_CROWDS_CROWD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/bench/crowds/crowd_process.h"

namespace sluice::bench {

struct CrowdPlan {
  std::string program;  // path of crowd_worker_main
  std::string address;  // of the server
  uint64_t elements = 1;
  uint32_t workers = 1;
  uint32_t killed = 0;     // of the workers: those that KillSome() kills; less than all
  uint32_t processes = 1;  // in which the workers are, if no process is killed
  double compute_seconds = 0;
  bool shared_memory = false;
  bool two_calls = false;
  bool bare = false;  // calls of gRPC and nothing else
};

// The workers in each process. Those that will be killed share no process with others, and come
// first; `processes_to_kill` tells in how many processes they are.
struct CrowdShares {
  std::vector<uint32_t> workers;
  size_t processes_to_kill = 0;
};
CrowdShares SharesOf(const CrowdPlan& plan);

// The rounds of all processes that ended in some time.
struct CrowdRounds {
  std::vector<double> seconds;  // of each, in no order
  uint64_t least = 0;           // how many the worker with the fewest has
};

// What all workers were answered that were not killed.
struct CrowdTotals {
  uint64_t accepted = 0;
  uint64_t stale = 0;
  uint64_t others = 0;       // duplicate or skipped
  uint64_t most_rounds = 0;  // of the worker that made most
};

// Externally synchronized. The caller must ignore SIGPIPE. The methods are called in this order;
// Take() and CpuSeconds() may be called several times.
class Crowd {
 public:
  // Starts the processes, and waits until all workers have connected.
  static absl::StatusOr<std::unique_ptr<Crowd>> Start(const CrowdPlan& plan);

  // All workers join at once. Returns the seconds from the first one's start to the last one's end.
  absl::StatusOr<double> Join();

  // From now on all push and pull.
  absl::Status Begin();

  // The rounds that ended since the last call.
  absl::StatusOr<CrowdRounds> Take();

  // What all processes have used since they started.
  absl::StatusOr<double> CpuSeconds() const;

  // Kills the processes of the workers that the plan names, by SIGKILL, and forgets them.
  void KillSome();

  // Each worker ends its round and leaves, then the processes end.
  absl::StatusOr<CrowdTotals> Leave();

 private:
  using Answers = std::vector<std::vector<double>>;

  absl::StatusOr<Answers> AskAll(absl::string_view command, size_t least_numbers);
  absl::StatusOr<Answers> HearAll(size_t least_numbers);

  std::vector<std::unique_ptr<CrowdProcess>> processes_;
  size_t processes_to_kill_ = 0;  // the first ones
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CROWDS_CROWD_H_
