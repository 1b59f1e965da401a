// Learners made of LibTorch: the door between the training loop and the models. Exceptions of
// LibTorch end here and become statuses.

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

// Trains with torch::optim in this process; INVALID_ARGUMENT if it lacks the optimizer.
absl::StatusOr<std::unique_ptr<Learner>> MakeLocalLearner(const LearnerOptions& options);

// Trains with a RemoteOptimizer; `job` outlives the learner.
absl::StatusOr<std::unique_ptr<Learner>> MakeRemoteLearner(const LearnerOptions& options,
                                                           const Job& job);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_LEARNERS_H_
