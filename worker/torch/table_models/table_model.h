// The interface of the models with tables that learners.h trains and evaluator.h evaluates. Beside
// a classifier, which maps samples to logits, such a model has a loss of its own, and a test of its
// own: a batch has ids of rows, and what is to be learnt from it differs from model to model.

#ifndef SLUICE_WORKER_TORCH_TABLE_MODELS_TABLE_MODEL_H_
#define SLUICE_WORKER_TORCH_TABLE_MODELS_TABLE_MODEL_H_

#include <torch/nn/module.h>

#include "worker/data/batch.h"
#include "worker/training/evaluation.h"

namespace sluice {

// Its parameters are those of the module; its tables are RemoteEmbeddings, or embeddings of
// torch::nn (row_sources.h).
class TableModel : public torch::nn::Module {
 public:
  // The mean loss over the batch. The batch is used until backward() has run.
  virtual torch::Tensor Loss(const Batch& batch) = 0;

  // Tests the model. Leaves it in evaluation mode. The rows that it looks up depend on `test`
  // alone, and not on the parameters.
  TestResult Evaluate(const Batch& test) {
    const torch::NoGradGuard no_gradients;
    eval();
    return Test(test);
  }

 private:
  virtual TestResult Test(const Batch& test) = 0;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLE_MODELS_TABLE_MODEL_H_
