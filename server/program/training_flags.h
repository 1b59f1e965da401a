// The command line's say in how training goes: consistency, schedule of the learning rate, guards.

#ifndef SLUICE_SERVER_PROGRAM_TRAINING_FLAGS_H_
#define SLUICE_SERVER_PROGRAM_TRAINING_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "server/state/shard_status.h"

namespace CLI {
class App;
}

namespace sluice {

// As given; absent values get defaults that depend on the mode and the launch.
struct TrainingFlags {
  std::string mode = "sync";
  absl::optional<uint32_t> workers;
  absl::optional<uint32_t> quorum;
  absl::optional<uint32_t> max_staleness;
  uint32_t slack = 0;
  std::string reduction = "mean";
  absl::optional<std::string> reduction_order;
  bool discount_stale = false;
  bool inconsistent_reads = false;
  absl::optional<double> max_step_wait;  // seconds
  std::string on_max_step_wait = "wait";

  std::string lr_schedule = "constant";
  LearningRateSchedule schedule;  // but for its kind
  Guards guards;
};

// Adds them to `app`, in groups of their own. `flags` outlives the parsing.
void AddTrainingFlags(CLI::App& app, TrainingFlags& flags);

// Fills in consistency, expected_workers, schedule and guards, or says which flag is wrong.
// `launched_workers` is 0 if nobody knows.
absl::Status ApplyTrainingFlags(const TrainingFlags& flags, uint32_t launched_workers,
                                ShardOptions* options);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_TRAINING_FLAGS_H_
