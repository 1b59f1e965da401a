// Learners that use LibTorch. The training loop (worker/training/trainer.h) calls them; they run
// the model and the optimizer, and turn LibTorch's exceptions into statuses.

#ifndef SLUICE_WORKER_TORCH_TRAINING_LEARNERS_H_
#define SLUICE_WORKER_TORCH_TRAINING_LEARNERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/protocol/optimizer_options.h"
#include "worker/job.h"
#include "worker/torch/training/gradient_group.h"
#include "worker/torch/training/trained_model.h"
#include "worker/training/learner.h"
#include "worker/training/local_steps.h"

namespace sluice {

// `choice` also says what Evaluate() tests the model on.
struct LearnerOptions {
  ModelChoice choice;
  OptimizerOptions optimizer;
  // Remote learner only: takes steps itself, and pushes parameters instead of gradients.
  absl::optional<LocalSteps> local;
  // Remote learner only: sends gradients during backward.
  bool overlap = false;
  LearningRateSchedule schedule;  // local learner only; a remote learner uses the server's
  uint64_t seed = 1;              // of the random numbers of the model's first parameters
  // The first parameters, see LoadStateDict(); empty: random. Not for a model with tables, whose
  // rows such a file does not bring to the server.
  std::string init_from;
  int threads = 1;     // of LibTorch
  int batch_size = 0;  // of the batches that Learn() will get; 0: unknown
  // Called after each batch, with the model as it is then; may be null.
  std::function<void(const torch::nn::Module& model, const LearnReport& report)> watch;
};

// Makes a learner that trains in this process with torch::optim. INVALID_ARGUMENT if an option is
// not valid, if torch::optim does not have the optimizer, or if a classifier cannot be trained on
// batches of that size. With `group`, which must outlive the
// learner, it averages its gradients with the other ranks of the group: then all ranks take the
// same steps, on batches of which each has a part.
absl::StatusOr<std::unique_ptr<Learner>> MakeLocalLearner(const LearnerOptions& options,
                                                          GradientGroup* group = nullptr);

// Makes a learner that trains with a RemoteOptimizer: joins the job, and returns once the model has
// the job's parameters. INVALID_ARGUMENT, before it joins, if an option is not valid or if a
// classifier cannot be trained on batches of that size. Other errors are those of RemoteOptimizer's
// constructor. `job` must outlive the learner.
absl::StatusOr<std::unique_ptr<Learner>> MakeRemoteLearner(const LearnerOptions& options,
                                                           const Job& job);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_LEARNERS_H_
