// The flags for training: consistency mode, schedule of the learning rate, guards.

#ifndef SLUICE_SERVER_PROGRAM_TRAINING_FLAGS_H_
#define SLUICE_SERVER_PROGRAM_TRAINING_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "server/state/shard_options.h"

namespace CLI {
class App;
}

namespace sluice {

// The flags as the user gave them. The default of an absent value depends on the mode and the
// launch.
struct TrainingFlags {
  std::string mode = "sync";
  absl::optional<uint32_t> workers;
  absl::optional<uint32_t> quorum;
  absl::optional<uint32_t> max_staleness;
  absl::optional<uint32_t> slack;
  std::string reduction = "mean";
  absl::optional<std::string> reduction_order;
  bool discount_stale = false;
  std::string staleness_rules = "auto";
  bool inconsistent_reads = false;
  absl::optional<double> max_step_wait;  // seconds
  std::string on_max_step_wait = "wait";

  std::string lr_schedule = "constant";
  LearningRateSchedule schedule;  // all but its kind, which lr_schedule names
  // The next three are no flags. A program sets them if it knows when training ends: after so many
  // pushes of all workers, after so many pushes of each worker, or at a step. What comes first
  // counts. A cosine without --lr-total-steps ends then. 0: unknown.
  uint64_t pushes = 0;
  uint64_t pushes_of_each = 0;
  uint64_t last_step = 0;
  Guards guards;
};

// Declares the flags in groups of `app`. `flags` must outlive the parsing.
void AddTrainingFlags(CLI::App& app, TrainingFlags& flags);

// Sets consistency, expected_workers, schedule and guards in `options`. INVALID_ARGUMENT names a
// wrong flag. `launched_workers` is 0 if the number of workers is unknown.
absl::Status ApplyTrainingFlags(const TrainingFlags& flags, uint32_t launched_workers,
                                ShardOptions* options);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_TRAINING_FLAGS_H_
