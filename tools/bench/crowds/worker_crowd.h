// The workers of one process, each with a thread of its own.

#ifndef SLUICE_TOOLS_BENCH_CROWDS_WORKER_CROWD_H_
#define SLUICE_TOOLS_BENCH_CROWDS_WORKER_CROWD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/base/stop_flag.h"
#include "tools/bench/crowds/crowd_worker.h"

namespace sluice::bench {

// When the first worker began to join, and when the last one had joined: seconds on the machine's
// monotonic clock, which all processes share.
struct JoinTimes {
  double first = 0;
  double last = 0;
};

// The rounds that ended in some time.
struct TakenRounds {
  std::vector<float> seconds;  // of each, in no order
  uint64_t least = 0;          // how many the worker with the fewest has
};

// Used by one thread, which calls the methods in the order below. Take() may be called several
// times. An object whose Leave() was not called must live as long as the process.
class WorkerCrowd {
 public:
  // Connects all workers.
  static absl::StatusOr<std::unique_ptr<WorkerCrowd>> Connect(const CrowdOptions& options);

  // Starts the threads; all workers join at once. Returns when all have joined, or one has failed.
  absl::StatusOr<JoinTimes> Join();

  // From now on all push and pull.
  void Start() { start_.Notify(); }

  // The rounds of all workers that ended since the last call.
  TakenRounds Take();

  // Lets each worker end its round and leave. Returns the first error of any.
  absl::StatusOr<PushAnswers> Leave();

  // How many rounds the worker has made that made most.
  uint64_t MostRounds() const;

 private:
  explicit WorkerCrowd(std::vector<std::unique_ptr<CrowdWorker>> workers)
      : workers_(std::move(workers)) {}

  void RunWorker(CrowdWorker& worker);
  void Fail(const absl::Status& why);

  const std::vector<std::unique_ptr<CrowdWorker>> workers_;
  std::vector<std::thread> threads_;
  absl::Notification start_;
  StopFlag stop_;

  absl::Mutex mu_;
  size_t joined_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CROWDS_WORKER_CROWD_H_
