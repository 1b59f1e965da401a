// Trains with a server and many workers in one thread, in virtual time.
//
// The server is a Shard, with everything that decides what a step is made of: the mode, the rules
// for stale gradients, the optimizers. A worker is a few variables. It holds the parameters that it
// pulled last, computes for a time that is drawn, pushes, and pulls; the time has no unit, and
// messages take none of it. Whoever is done first comes first. A worker for which the mode has no
// parameters yet waits, and computes from the moment when it gets them. So staleness comes out of
// the draw, as many workers as one likes need one core, and a run repeats to the bit.
//
// The next batch in the order of the data goes to the worker that begins to compute next. So all
// runs see the same batches, and all workers train until the end.

#ifndef SLUICE_TOOLS_BENCH_STALENESS_VIRTUAL_TRAINING_H_
#define SLUICE_TOOLS_BENCH_STALENESS_VIRTUAL_TRAINING_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/protocol/optimizer_config.h"
#include "server/state/shard_options.h"
#include "server/state/shard_status.h"
#include "tools/bench/staleness/compute_times.h"
#include "tools/bench/staleness/workload.h"

namespace sluice::bench {

struct VirtualTrainingOptions {
  ShardOptions shard;         // `expected_workers` take part
  OptimizerConfig optimizer;  // the server's
  int64_t batches = 0;        // of all workers together
  uint32_t local_steps = 1;   // batches that a worker computes for one push
  ComputeTimeOptions times;
  uint64_t seed = 1;  // of the times
};

struct EpochReport {
  int64_t epoch = 0;  // from 1
  double loss = 0;    // mean over its batches
};

struct TrainingReport {
  ShardStatus server;             // at the end
  std::vector<float> parameters;  // the last
  double loss = 0;                // mean over the last batches, at most an epoch of them
  double time = 0;                // virtual time, in mean times of a worker's batch
  // Why training ended early: the error with which the server refused a push or a pull, for example
  // because a gradient was not finite. OK if all batches were computed.
  absl::Status ended;
};

// `on_epoch` is called after as many batches as an epoch has, with the server's parameters of that
// moment. It may be null. Returns an error if training could not begin.
using EpochListener = std::function<void(const EpochReport&, absl::Span<const float> parameters)>;
absl::StatusOr<TrainingReport> TrainInVirtualTime(const VirtualTrainingOptions& options,
                                                  Workload& workload,
                                                  const EpochListener& on_epoch = nullptr);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_STALENESS_VIRTUAL_TRAINING_H_
