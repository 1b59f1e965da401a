#include "worker/torch/training/trained_model.h"

#include <torch/torch.h>

#include <stdexcept>
#include <utility>

#include "worker/torch/models/models.h"
#include "worker/torch/training/batch_tensors.h"
#include "worker/torch/training/evaluate.h"

namespace sluice {
namespace {

class TrainedClassifier final : public TrainedModel {
 public:
  explicit TrainedClassifier(const ModelChoice& choice)
      : model_(MakeModel(choice.model, choice.form)), test_(choice.test) {}

  torch::nn::Module& module() override { return *model_; }

  float ForwardBackward(Batch batch) override {
    model_->train();
    const BatchTensors tensors = TensorsOf(std::move(batch));
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(model_->forward(tensors.inputs), tensors.labels);
    loss.backward();
    return loss.item<float>();
  }

  TestResult Test(const EvaluationListener& listener) override {
    if (test_ == nullptr) throw std::logic_error("the model was made without data to test it on");
    return ResultOf(Evaluate(*model_, *test_, listener));
  }

 private:
  const std::shared_ptr<Classifier> model_;
  const std::shared_ptr<const Dataset> test_;
};

class TrainedTableModel final : public TrainedModel {
 public:
  TrainedTableModel(const ModelChoice& choice, RowsAre rows)
      : model_(MakeTableModel(choice.model, rows)), data_(choice.data) {}

  torch::nn::Module& module() override { return *model_; }

  float ForwardBackward(Batch batch) override {
    model_->train();
    const torch::Tensor loss = model_->Loss(batch);
    loss.backward();
    return loss.item<float>();
  }

  TestResult Test(const EvaluationListener& listener) override {
    TestResult result = model_->Evaluate(data_->test());
    if (listener != nullptr) listener(result.samples);
    return result;
  }

 private:
  const std::shared_ptr<TableModel> model_;
  const std::shared_ptr<const TableData> data_;
};

}  // namespace

std::unique_ptr<TrainedModel> MakeTrainedModel(const ModelChoice& choice, RowsAre rows) {
  if (choice.data == nullptr) return std::make_unique<TrainedClassifier>(choice);
  return std::make_unique<TrainedTableModel>(choice, rows);
}

}  // namespace sluice
