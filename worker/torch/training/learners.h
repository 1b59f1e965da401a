// Learners that use LibTorch. They stand between the training loop and the models, and turn
// LibTorch's exceptions into statuses.

#ifndef SLUICE_WORKER_TORCH_TRAINING_LEARNERS_H_
#define SLUICE_WORKER_TORCH_TRAINING_LEARNERS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/protocol/optimizer_options.h"
#include "worker/job.h"
#include "worker/training/learner.h"
#include "worker/training/local_steps.h"

namespace sluice {

struct LearnerOptions {
  std::string model = "lenet";
  OptimizerOptions optimizer;
  absl::optional<LocalSteps> local;  // of a remote learner: averaging in place of gradients
  bool overlap = false;              // a remote learner's gradients leave during backward
  LearningRateSchedule schedule;     // of a local learner; a remote one's is the server's
  uint64_t seed = 1;                 // of the first parameters
  std::string init_from;             // a state dict in place of those; empty: none
  int threads = 1;                   // of LibTorch
};

// Makes a learner that trains in this process with torch::optim. INVALID_ARGUMENT if torch::optim
// does not have the optimizer.
absl::StatusOr<std::unique_ptr<Learner>> MakeLocalLearner(const LearnerOptions& options);

// Makes a learner that trains with a RemoteOptimizer. `job` must outlive the learner.
absl::StatusOr<std::unique_ptr<Learner>> MakeRemoteLearner(const LearnerOptions& options,
                                                           const Job& job);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_LEARNERS_H_
