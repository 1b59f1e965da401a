#include "worker/training/trainer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "worker/data/batch_deal.h"
#include "worker/data/batch_loader.h"
#include "worker/data/sampler.h"

namespace sluice {
namespace {

SamplerOptions SamplerFor(const TrainerOptions& options, int64_t samples, const Place& place) {
  SamplerOptions sampler;
  sampler.dataset_size = samples;
  sampler.batch_size = options.batch_size;
  // A worker that joined beyond the launched number shares another worker's part of the data.
  sampler.worker_index = static_cast<int>(place.index % place.workers);
  sampler.workers = static_cast<int>(place.workers);
  sampler.seed = options.seed;
  return sampler;
}

// How many steps these launches have made, or would have if no worker had been slower.
int64_t StepsOf(const std::vector<BatchDeal::Launch>& launches) {
  int64_t steps = 0;
  for (const BatchDeal::Launch& launch : launches) {
    if (!launch.empty()) steps += *std::max_element(launch.begin(), launch.end());
  }
  return steps;
}

}  // namespace

absl::Status Validate(const TrainerOptions& options, int64_t samples) {
  if (options.data_threads < 1 || options.data_threads > kMostDataThreads) {
    return absl::InvalidArgumentError(absl::StrCat(
        "found ", options.data_threads, " data threads, expected 1 to ", kMostDataThreads));
  }
  return SamplerFor(options, samples, Place()).Validate();
}

absl::Status Validate(const TrainerOptions& options, const Dataset& data) {
  absl::Status valid = Validate(options, data.size());
  valid.Update(CheckFits(options.augmentation, data));
  return valid;
}

absl::Status Train(const TrainerOptions& options, const Dataset& data, Learner& learner,
                   const BatchListener& listener) {
  const absl::Status valid = Validate(options, data);
  if (!valid.ok()) return valid;
  Augmentation augmentation = options.augmentation;
  augmentation.seed = options.seed;
  return Train(options, SamplesOf(data, augmentation), learner, listener);
}

absl::Status Train(const TrainerOptions& options, const TrainingSamples& samples, Learner& learner,
                   const BatchListener& listener) {
  const Place place = learner.place();
  BatchLoaderOptions batches;
  batches.sampler = SamplerFor(options, samples.size, place);
  absl::Status valid = batches.sampler.Validate();
  valid.Update(Validate(options, samples.size));
  if (!valid.ok()) return valid;
  batches.threads = options.data_threads;
  batches.earlier_launches = place.earlier_launches;
  const BatchDeal deal = DealFor(batches);
  batches.begin = place.batches_done;
  batches.end = deal.Count(options.epochs);
  if (options.max_steps > 0) {
    batches.end = std::min(batches.end, options.max_steps - StepsOf(place.earlier_launches));
  }
  BatchLoader loader(samples, batches);
  for (int64_t step = batches.begin;; ++step) {
    absl::StatusOr<absl::optional<Batch>> batch = loader.Next();
    if (!batch.ok()) return batch.status();
    if (!batch->has_value()) break;
    const int64_t samples = (*batch)->size();
    const auto report = learner.Learn(**std::move(batch));
    if (!report.ok()) return report.status();
    TrainedBatch trained{static_cast<int>(deal.At(step).epoch), samples, absl::nullopt, *report};
    if (options.until_step == Step()) trained.left = batches.end - step - 1;
    if (listener) listener(trained);
    if (options.until_step > Step() && report->step >= options.until_step) break;
  }
  return absl::OkStatus();
}

}  // namespace sluice
