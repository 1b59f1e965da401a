// One worker of a crowd, with a connection of its own.

#ifndef SLUICE_TOOLS_BENCH_CROWDS_CROWD_WORKER_H_
#define SLUICE_TOOLS_BENCH_CROWDS_CROWD_WORKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/stop_flag.h"
#include "common/protocol/protocol_types.h"

namespace sluice::bench {

// What the workers of a process have in common.
struct CrowdOptions {
  std::string address;         // of the server
  uint64_t elements = 1;       // float32 numbers in the vector
  uint32_t first = 0;          // index of the first worker
  uint32_t workers = 1;        // those of this process
  absl::Duration compute;      // pause of a worker before each push
  bool shared_memory = false;  // for gradients and parameters
  bool two_calls = false;      // in a round, even if the vector is small
  bool bare = false;           // BareWorker in place of SluiceWorker
};

// The answers to the pushes of some workers.
struct PushAnswers {
  uint64_t accepted = 0;  // those that completed a step, too
  uint64_t stale = 0;
  uint64_t others = 0;  // duplicate or skipped

  uint64_t all() const { return accepted + stale + others; }
};

// Its methods are for one thread; Take() and answers() are for any.
class CrowdWorker {
 public:
  explicit CrowdWorker(absl::Duration compute) : compute_(compute) {}
  virtual ~CrowdWorker() = default;

  virtual absl::Status Join() = 0;

  // Makes rounds until `stop` is raised, then leaves.
  absl::Status Work(StopFlag& stop);

  // The seconds of the rounds that ended since the last call: from the start of each until the
  // parameters, or the bytes, are there.
  std::vector<float> Take();

  // As many as rounds ended.
  PushAnswers answers() const;

 private:
  virtual absl::StatusOr<Disposition> DoRound() = 0;
  virtual absl::Status Leave() = 0;

  absl::Status TimeRound();
  void Note(Disposition disposition, double seconds);

  const absl::Duration compute_;  // the pause before each round

  mutable absl::Mutex mu_;
  std::vector<float> seconds_ ABSL_GUARDED_BY(mu_);
  PushAnswers answers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CROWDS_CROWD_WORKER_H_
