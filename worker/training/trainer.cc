#include "worker/training/trainer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "worker/data/sampler.h"

namespace sluice {
namespace {

using Rows = std::vector<int64_t>;

SamplerOptions SamplerFor(const TrainerOptions& options, const Dataset& data, const Place& place) {
  SamplerOptions sampler;
  sampler.dataset_size = data.size();
  sampler.batch_size = options.batch_size;
  // A worker that joined beyond the launched number shares another worker's part of the data.
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
  const int64_t per_epoch = sampler.steps_per_epoch();
  int64_t steps = per_epoch * options.epochs;
  if (options.max_steps > 0) steps = std::min(steps, options.max_steps);
  const auto rows_of = [&](int64_t step) {
    if (step >= steps) return Rows();
    return sampler.Batch(static_cast<int>(step / per_epoch), step % per_epoch);
  };
  const int64_t first = learner.place().batches_done;
  Rows next = rows_of(first);
  for (int64_t step = first; step < steps; ++step) {
    const Rows rows = std::move(next);
    next = rows_of(step + 1);
    const auto report = learner.Learn(data, rows, next);
    if (!report.ok()) return report.status();
    const auto epoch = static_cast<int>(step / per_epoch);
    if (progress != nullptr) progress->Note(epoch, *report, static_cast<int64_t>(rows.size()));
    if (options.until_step > Step() && report->step >= options.until_step) break;
  }
  return absl::OkStatus();
}

}  // namespace sluice
