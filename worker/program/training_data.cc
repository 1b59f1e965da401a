#include "worker/program/training_data.h"

#include <memory>
#include <utility>

#include "worker/data/load_dataset.h"
#include "worker/data/tables/load_table_data.h"

namespace sluice {
namespace {

// They own the data.
TrainingSamples SamplesOf(std::shared_ptr<const Dataset> data, const TrainerOptions& options) {
  Augmentation augmentation = options.augmentation;
  augmentation.seed = options.seed;
  TrainingSamples samples = SamplesOf(*data, augmentation);
  samples.make = [data = std::move(data), make = std::move(samples.make)](
                     absl::Span<const int64_t> rows, int64_t epoch, int64_t step) {
    return make(rows, epoch, step);
  };
  return samples;
}

absl::StatusOr<TrainingData> LoadTables(const ModelFlags& flags, const TrainerOptions& options) {
  const auto data = LoadTableData(flags.model, flags.data.folder);
  if (!data.ok()) return data.status();
  const absl::Status valid = Validate(options, (*data)->size());
  if (!valid.ok()) return valid;
  return TrainingData{SamplesOf(*data), {flags.model, SampleForm(), nullptr, *data}};
}

}  // namespace

absl::StatusOr<TrainingData> LoadTrainingData(const ModelFlags& flags,
                                              const TrainerOptions& options) {
  if (IsTableModel(flags.model)) return LoadTables(flags, options);
  auto test = LoadDataset(flags.data, DatasetSplit::kTest);
  if (!test.ok()) return test.status();
  auto train = LoadDataset(flags.data, DatasetSplit::kTrain);
  if (!train.ok()) return train.status();
  const absl::Status valid = Validate(options, *train);
  if (!valid.ok()) return valid;
  const SampleForm form = train->form;
  return TrainingData{
      SamplesOf(std::make_shared<const Dataset>(*std::move(train)), options),
      {flags.model, form, std::make_shared<const Dataset>(*std::move(test)), nullptr}};
}

uint64_t CountTrainingSamples(const ModelFlags& flags) {
  if (!IsTableModel(flags.model)) {
    return CountSamples(flags.data, DatasetSplit::kTrain).value_or(0);
  }
  const auto data = LoadTableData(flags.model, flags.data.folder);
  return data.ok() ? static_cast<uint64_t>((*data)->size()) : 0;
}

}  // namespace sluice
