#include "worker/data/batch_loader.h"

#include <utility>

namespace sluice {

BatchLoader::BatchLoader(const Dataset& data, const BatchLoaderOptions& options)
    : data_(data),
      options_(options),
      sampler_(options.sampler),
      taken_(options.begin),
      given_(options.begin) {
  for (int i = 0; i < options.threads; ++i) threads_.emplace_back([this] { Work(); });
}

BatchLoader::~BatchLoader() {
  {
    absl::MutexLock lock(&mu_);
    ends_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::optional<Batch> BatchLoader::Next() {
  absl::MutexLock lock(&mu_);
  if (given_ >= options_.end) return absl::nullopt;
  while (ready_.empty() || ready_.begin()->first != given_) changed_.Wait(&mu_);
  Batch batch = std::move(ready_.begin()->second);
  ready_.erase(ready_.begin());
  ++given_;
  changed_.SignalAll();
  return batch;
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
    const int64_t per_epoch = sampler_.steps_per_epoch();
    const int64_t epoch = *step / per_epoch;
    const std::vector<int64_t> rows = sampler_.Batch(epoch, *step % per_epoch);
    mu_.Unlock();
    Batch batch = MakeAugmentedBatch(data_, rows, options_.augmentation, epoch);
    mu_.Lock();
    ready_.emplace(*step, std::move(batch));
    changed_.SignalAll();
  }
}

}  // namespace sluice
