#include "worker/torch/training/learners.h"

#include <torch/torch.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/protocol/optimizer_config.h"
#include "worker/torch/guarded.h"
#include "worker/torch/models/models.h"
#include "worker/torch/remote_optimizer.h"
#include "worker/torch/state_dict.h"
#include "worker/torch/threads.h"
#include "worker/torch/torch_optimizers.h"
#include "worker/torch/training/trained_model.h"

namespace sluice {
namespace {

std::unique_ptr<TrainedModel> MakeSeededModel(const LearnerOptions& options, RowsAre rows) {
  SetThreads(options.threads);
  if (options.batch_size == 1 && options.choice.data == nullptr) {
    CheckTrainsOnOneSample(options.choice.model, options.choice.form);
  }
  torch::manual_seed(options.seed);
  std::unique_ptr<TrainedModel> model = MakeTrainedModel(options.choice, rows);
  if (options.init_from.empty()) return model;
  if (options.choice.data != nullptr) {
    throw std::invalid_argument(
        options.init_from +
        " would set the parameters of a model with tables, and no file has rows for it; give the "
        "server --checkpoint-dir to go on with both");
  }
  const absl::Status loaded = LoadStateDict(options.init_from, model->module());
  if (!loaded.ok()) throw std::invalid_argument(std::string(loaded.message()));
  return model;
}

class LocalLearner final : public Learner {
 public:
  LocalLearner(const LearnerOptions& options, GradientGroup* group)
      : options_(options),
        model_(MakeSeededModel(options, RowsAre::kInThisProcess)),
        optimizer_(MakeTorchOptimizer({options.optimizer}, model_->module())),
        group_(group) {
    if (group_ != nullptr) group_->Equalize(model_->module());
  }

  Place place() const override {
    if (group_ == nullptr) return Place();
    const MpiWorld& world = group_->world();
    return {static_cast<uint32_t>(world.rank), static_cast<uint32_t>(world.size), 0};
  }

  absl::StatusOr<LearnReport> Learn(Batch batch) override {
    return Guarded([&] {
      LearnReport report;
      optimizer_->zero_grad();
      report.loss = model_->ForwardBackward(std::move(batch));
      if (group_ != nullptr) {
        const absl::Time computed = RealClock().Now();
        group_->Average(model_->module());
        report.exchange = RealClock().Now() - computed;
      }
      SetLearningRates({options_.optimizer}, options_.schedule.FactorAt(step_), *optimizer_);
      optimizer_->step();
      step_ = step_.Next();
      report.step = step_;
      if (options_.watch) options_.watch(model_->module(), report);
      return report;
    });
  }

  absl::Status Finish(bool) override {
    if (group_ == nullptr) return absl::OkStatus();
    return Guarded([&] {
             group_->Barrier();
             return true;
           })
        .status();
  }

  void Fail(const absl::Status&) override {}

  absl::StatusOr<TestResult> Evaluate() override {
    return Guarded([&] { return model_->Test(nullptr); });
  }

  absl::Status Report(const Results&) override { return absl::OkStatus(); }

 private:
  const LearnerOptions options_;
  const std::unique_ptr<TrainedModel> model_;
  const std::unique_ptr<torch::optim::Optimizer> optimizer_;
  GradientGroup* const group_;  // null: this process is alone
  Step step_;
};

class RemoteLearner final : public Learner {
 public:
  RemoteLearner(const LearnerOptions& options, const Job& job)
      : model_(MakeSeededModel(options, RowsAre::kOnServers)),
        optimizer_(job, model_->module(), OptimizerConfig{options.optimizer}, options.local,
                   options.overlap ? Overlap::kBackward : Overlap::kOff),
        watch_(options.watch),
        batches_of_a_push_(options.local.has_value() ? options.local->every : 1) {}

  Place place() const override {
    const auto pushes = static_cast<int64_t>(optimizer_.pushes_before());
    Place place{optimizer_.index(), optimizer_.workers(), pushes * batches_of_a_push_, {}};
    for (const std::vector<uint64_t>& launch : optimizer_.earlier_launches()) {
      place.earlier_launches.emplace_back();
      for (const uint64_t taken : launch) {
        place.earlier_launches.back().push_back(static_cast<int64_t>(taken) * batches_of_a_push_);
      }
    }
    return place;
  }

  absl::StatusOr<LearnReport> Learn(Batch batch) override {
    const auto samples = static_cast<uint32_t>(batch.size());
    return Guarded([&] {
      LearnReport report;
      optimizer_.zero_grad();
      report.loss = model_->ForwardBackward(std::move(batch));
      const absl::Time computed = RealClock().Now();
      const RoundReport round = optimizer_.step(samples, report.loss);
      report.exchange = RealClock().Now() - computed;
      report.step = round.step;
      report.staleness = round.staleness;
      if (watch_) watch_(model_->module(), report);
      return report;
    });
  }

  absl::Status Finish(bool stay) override {
    return Guarded([&] {
             if (stay) {
               optimizer_.await_end_of_training();
             } else {
               optimizer_.leave();
             }
             return true;
           })
        .status();
  }

  void Fail(const absl::Status& why) override { optimizer_.fail(std::string(why.message())); }

  absl::StatusOr<TestResult> Evaluate() override {
    return Guarded([&] { return model_->Test(nullptr); });
  }

  absl::Status Report(const Results& results) override {
    return Guarded([&] {
             optimizer_.report(results);
             return true;
           })
        .status();
  }

 private:
  const std::unique_ptr<TrainedModel> model_;
  RemoteOptimizer optimizer_;
  const std::function<void(const torch::nn::Module&, const LearnReport&)> watch_;
  const int64_t batches_of_a_push_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Learner>> MakeLocalLearner(const LearnerOptions& options,
                                                          GradientGroup* group) {
  const absl::Status valid = Validate(options.optimizer);
  if (!valid.ok()) return valid;
  return Guarded(
      [&]() -> std::unique_ptr<Learner> { return std::make_unique<LocalLearner>(options, group); });
}

absl::StatusOr<std::unique_ptr<Learner>> MakeRemoteLearner(const LearnerOptions& options,
                                                           const Job& job) {
  const absl::Status valid = Validate(options.optimizer);
  if (!valid.ok()) return valid;
  return Guarded(
      [&]() -> std::unique_ptr<Learner> { return std::make_unique<RemoteLearner>(options, job); });
}

}  // namespace sluice
