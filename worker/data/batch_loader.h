// Makes the batches of one worker ahead of its steps, on threads of its own, so that no step waits
// while images are cropped and normalized.

#ifndef SLUICE_WORKER_DATA_BATCH_LOADER_H_
#define SLUICE_WORKER_DATA_BATCH_LOADER_H_

#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "worker/data/batch.h"
#include "worker/data/batch_deal.h"
#include "worker/data/sampler.h"
#include "worker/data/training_samples.h"

namespace sluice {

struct BatchLoaderOptions {
  SamplerOptions sampler;
  // The batches that earlier launches of the job have taken.
  std::vector<BatchDeal::Launch> earlier_launches;
  // The steps are the batches [begin, end) of DealFor().
  int64_t begin = 0;
  int64_t end = 0;
  int threads = 1;  // at least 1; at most threads + 1 batches are made ahead
};

// Deals this worker's batches, as the options say.
BatchDeal DealFor(const BatchLoaderOptions& options);

// The batches do not depend on the number of threads. Next() is called by one thread.
class BatchLoader {
 public:
  // The sampler's options are valid, and its dataset_size is that of `samples`.
  BatchLoader(TrainingSamples samples, const BatchLoaderOptions& options);
  // Waits for the batches that are in the making.
  ~BatchLoader();

  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // Returns the batch of the next step, once it is made; nothing after the last. RESOURCE_EXHAUSTED
  // if memory does not suffice for one.
  absl::StatusOr<absl::optional<Batch>> Next();

  // How many batches are ready or in the making.
  int64_t ahead();

 private:
  void Work();
  // Waits for a step to make. Returns nothing when there will be none.
  absl::optional<int64_t> TakeStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const TrainingSamples samples_;
  const BatchLoaderOptions options_;
  absl::Mutex mu_;
  absl::CondVar changed_;
  const BatchDeal deal_;
  Sampler sampler_ ABSL_GUARDED_BY(mu_);
  int64_t taken_ ABSL_GUARDED_BY(mu_);  // the next step to make
  int64_t given_ ABSL_GUARDED_BY(mu_);  // the next step to give
  std::map<int64_t, Batch> ready_ ABSL_GUARDED_BY(mu_);
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_BATCH_LOADER_H_
