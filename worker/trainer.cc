#include "worker/trainer.h"

#include <vector>

#include "worker/sampler.h"

namespace sluice {
namespace {

SamplerOptions SamplerFor(const TrainerOptions& options, const Dataset& data, const Place& place) {
  SamplerOptions sampler;
  sampler.dataset_size = data.size();
  sampler.batch_size = options.batch_size;
  // A worker that joined beyond the number launched takes somebody's part again.
  sampler.worker_index = static_cast<int>(place.index % place.workers);
  sampler.workers = static_cast<int>(place.workers);
  sampler.seed = options.seed;
  return sampler;
}

}  // namespace

absl::Status Train(const TrainerOptions& options, const Dataset& data, Learner& learner,
                   Progress* progress) {
  const SamplerOptions sampler_options = SamplerFor(options, data, learner.place());
  const absl::Status valid = sampler_options.Validate();
  if (!valid.ok()) return valid;
  Sampler sampler(sampler_options);
  int64_t steps = 0;
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    for (int64_t batch = 0; batch < sampler.steps_per_epoch(); ++batch) {
      if (options.max_steps > 0 && steps == options.max_steps) return absl::OkStatus();
      const std::vector<int64_t> rows = sampler.Batch(epoch, batch);
      const auto report = learner.Learn(data, rows);
      if (!report.ok()) return report.status();
      if (progress != nullptr) progress->Note(epoch, *report, static_cast<int64_t>(rows.size()));
      ++steps;
      if (options.until_step > Step() && report->step >= options.until_step) {
        return absl::OkStatus();
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice
