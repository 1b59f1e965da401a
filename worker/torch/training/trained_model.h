// A model as learners.h trains it and evaluator.h evaluates it: a classifier and its data set, or a
// model with tables and its data.

#ifndef SLUICE_WORKER_TORCH_TRAINING_TRAINED_MODEL_H_
#define SLUICE_WORKER_TORCH_TRAINING_TRAINED_MODEL_H_

#include <torch/nn/module.h>

#include <memory>

#include "worker/data/batch.h"
#include "worker/torch/table_models/table_models.h"
#include "worker/torch/training/model_choice.h"
#include "worker/training/evaluation.h"

namespace sluice {

// Used by one thread. Methods throw LibTorch's exceptions, and RemoteError if rows come from a
// server.
class TrainedModel {
 public:
  virtual ~TrainedModel() = default;

  virtual torch::nn::Module& module() = 0;

  // The mean loss over the batch, with its gradients in the module.
  virtual float ForwardBackward(Batch batch) = 0;

  // Tests the model on all samples of the test. Leaves it in evaluation mode. `listener` may be
  // null.
  virtual TestResult Test(const EvaluationListener& listener) = 0;
};

// Makes the model with random parameters from LibTorch's generator. `rows` says where the tables
// are, if it has any. Throws std::invalid_argument for a name that is not known, or a form that the
// model does not take.
std::unique_ptr<TrainedModel> MakeTrainedModel(const ModelChoice& choice, RowsAre rows);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_TRAINED_MODEL_H_
