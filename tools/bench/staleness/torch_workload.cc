#include "tools/bench/staleness/torch_workload.h"

#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tools/bench/staleness/torch_learned_model.h"
#include "worker/data/load_dataset.h"
#include "worker/data/sampler.h"
#include "worker/torch/batch_norms.h"
#include "worker/torch/flat_model.h"
#include "worker/torch/guarded.h"
#include "worker/torch/threads.h"
#include "worker/torch/torch_optimizers.h"

namespace sluice::bench {
namespace {

// A model, its parameters as one vector, and, for local steps, its optimizer.
class Replica {
 public:
  Replica(std::unique_ptr<LearnedModel> model, const absl::optional<OptimizerConfig>& local)
      : model_(std::move(model)),
        flat_(model_->module()),
        norms_(model_->module(), flat_.layout()),
        local_(local) {
    if (local.has_value()) optimizer_ = MakeTorchOptimizer(*local, model_->module());
  }

  FlatModel& flat() { return flat_; }
  LearnedModel& model() { return *model_; }

  void Load(absl::Span<const float> parameters) {
    std::copy(parameters.begin(), parameters.end(), flat_.values().begin());
    flat_.ScatterValues();
    norms_.NotePull();
  }

  // Computes the gradient of the batch, takes a step if the replica has an optimizer, and returns
  // the loss.
  float Learn(absl::Span<const int64_t> rows, double rate) {
    flat_.ZeroGradients();
    const torch::Tensor loss = model_->Loss(rows);
    loss.backward();
    if (optimizer_ != nullptr) {
      SetLearningRates(*local_, rate, *optimizer_);
      optimizer_->step();
    }
    return loss.item<float>();
  }

  // Of gradients; parameters have none.
  RunningMeans Means() const { return optimizer_ == nullptr ? norms_.Decays() : RunningMeans(); }

  std::vector<float> Result() {
    const absl::Span<const float> result =
        optimizer_ == nullptr ? flat_.GatherGradients().values : flat_.GatherValues();
    return {result.begin(), result.end()};
  }

 private:
  const std::unique_ptr<LearnedModel> model_;
  FlatModel flat_;
  BatchNorms norms_;
  const absl::optional<OptimizerConfig> local_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;  // null: it computes gradients
};

class TorchWorkload final : public Workload {
 public:
  TorchWorkload(const TorchWorkloadOptions& options, const SamplerOptions& sampler,
                MakeLearnedModel make)
      : options_(options), make_(std::move(make)), sampler_(sampler) {
    const absl::Span<const float> first = ReplicaOf(0).flat().GatherValues();
    first_parameters_.assign(first.begin(), first.end());
  }

  const Layout& layout() const override { return replicas_.begin()->second->flat().layout(); }
  const std::vector<float>& first_parameters() const override { return first_parameters_; }
  int64_t batches_per_epoch() const override { return sampler_.steps_per_epoch(); }

  Computed Compute(uint32_t worker, absl::Span<const float> parameters,
                   absl::Span<const int64_t> batches, double rate) override {
    Replica& replica = ReplicaOf(options_.local.has_value() ? worker : 0);
    replica.Load(parameters);
    Computed computed;
    for (const int64_t batch : batches) {
      const std::vector<int64_t> rows =
          sampler_.Batch(batch / batches_per_epoch(), batch % batches_per_epoch());
      computed.loss += replica.Learn(rows, rate) / static_cast<float>(batches.size());
      computed.samples += static_cast<uint32_t>(rows.size());
    }
    computed.values = replica.Result();
    computed.means = replica.Means();
    return computed;
  }

  double Accuracy(absl::Span<const float> parameters) override {
    Replica& replica = ReplicaOf(0);
    replica.Load(parameters);
    return replica.model().Accuracy();
  }

 private:
  Replica& ReplicaOf(uint32_t worker) {
    std::unique_ptr<Replica>& replica = replicas_[worker];
    if (replica == nullptr) {
      replica = std::make_unique<Replica>(make_(options_.seed), options_.local);
    }
    return *replica;
  }

  const TorchWorkloadOptions options_;
  const MakeLearnedModel make_;
  Sampler sampler_;
  std::map<uint32_t, std::unique_ptr<Replica>> replicas_;  // by worker; only 0 without local steps
  std::vector<float> first_parameters_;
};

void KeepFirst(int64_t count, Dataset* data) {
  data->labels.resize(static_cast<size_t>(count));
  data->images.resize(static_cast<size_t>(count * data->form.elements()));
}

absl::StatusOr<std::shared_ptr<const Images>> LoadImages(const TorchWorkloadOptions& options) {
  DatasetSource source;
  source.folder = options.data_dir;
  auto train = LoadDataset(source, DatasetSplit::kTrain);
  if (!train.ok()) return train.status();
  auto test = LoadDataset(source, DatasetSplit::kTest);
  if (!test.ok()) return test.status();
  const int64_t kept = options.test_images;
  if (kept > 0 && kept < test->size()) KeepFirst(kept, &*test);
  return std::make_shared<const Images>(Images{*std::move(train), *std::move(test)});
}

// Sets the size of the training set, too.
absl::StatusOr<MakeLearnedModel> FactoryOf(const TorchWorkloadOptions& options, int64_t* rows) {
  if (options.model == "transformer") {
    *rows = kSortingRows;
    return MakeLearnedModel(MakeSortingModel);
  }
  const auto images = LoadImages(options);
  if (!images.ok()) return images.status();
  *rows = (*images)->train.size();
  return MakeLearnedModel([name = options.model, images = *images](uint64_t seed) {
    return MakeImageModel(name, images, seed);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeTorchWorkload(const TorchWorkloadOptions& options) {
  SetThreads(1);
  SamplerOptions sampler;
  const auto make = FactoryOf(options, &sampler.dataset_size);
  if (!make.ok()) return make.status();
  sampler.batch_size = options.batch_size;
  sampler.seed = options.seed;
  const absl::Status valid = sampler.Validate();
  if (!valid.ok()) return valid;
  return Guarded([&]() -> std::unique_ptr<Workload> {
    return std::make_unique<TorchWorkload>(options, sampler, *make);
  });
}

}  // namespace sluice::bench
