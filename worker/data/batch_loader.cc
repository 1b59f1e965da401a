#include "worker/data/batch_loader.h"

#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

absl::StatusOr<Batch> TryToMake(const TrainingSamples& samples, const std::vector<int64_t>& rows,
                                int64_t epoch, int64_t step) {
  try {
    return samples.make(rows, epoch, step);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a batch of ", rows.size(),
                     " samples needs more memory than there is; give a smaller --batch-size"));
  }
}

}  // namespace

BatchDeal DealFor(const BatchLoaderOptions& options) {
  const SamplerOptions& sampler = options.sampler;
  return {sampler.dataset_size / sampler.batch_size, sampler.worker_index, sampler.workers,
          options.earlier_launches};
}

BatchLoader::BatchLoader(TrainingSamples samples, const BatchLoaderOptions& options)
    : samples_(std::move(samples)),
      options_(options),
      deal_(DealFor(options)),
      sampler_(options.sampler),
      taken_(options.begin),
      given_(options.begin) {
  for (int i = 0; i < options.threads; ++i) {
    try {
      threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error&) {  // the system has no more threads; some suffice
      if (threads_.empty()) throw;
      break;
    }
  }
}

BatchLoader::~BatchLoader() {
  {
    absl::MutexLock lock(&mu_);
    ends_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::StatusOr<absl::optional<Batch>> BatchLoader::Next() {
  absl::MutexLock lock(&mu_);
  if (given_ >= options_.end) return absl::nullopt;
  while (status_.ok() && (ready_.empty() || ready_.begin()->first != given_)) changed_.Wait(&mu_);
  if (!status_.ok()) return status_;
  Batch batch = std::move(ready_.begin()->second);
  ready_.erase(ready_.begin());
  ++given_;
  changed_.SignalAll();
  return batch;
}

int64_t BatchLoader::ahead() {
  absl::MutexLock lock(&mu_);
  return taken_ - given_;
}

absl::optional<int64_t> BatchLoader::TakeStep() {
  while (!ends_ && taken_ < options_.end && taken_ > given_ + options_.threads) {
    changed_.Wait(&mu_);
  }
  if (ends_ || taken_ >= options_.end) return absl::nullopt;
  return taken_++;
}

void BatchLoader::Work() {
  absl::MutexLock lock(&mu_);
  while (const absl::optional<int64_t> step = TakeStep()) {
    const BatchDeal::Block block = deal_.At(*step);
    const std::vector<int64_t> rows = sampler_.Block(block.epoch, block.block);
    mu_.Unlock();
    absl::StatusOr<Batch> batch = TryToMake(samples_, rows, block.epoch, *step);
    mu_.Lock();
    if (batch.ok()) {
      ready_.emplace(*step, *std::move(batch));
    } else {
      status_ = batch.status();
      ends_ = true;
    }
    changed_.SignalAll();
  }
}

}  // namespace sluice
