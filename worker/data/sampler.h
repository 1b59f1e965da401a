#ifndef SLUICE_WORKER_DATA_SAMPLER_H_
#define SLUICE_WORKER_DATA_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"

namespace sluice {

struct SamplerOptions {
  int64_t dataset_size = 0;  // rows in the dataset
  int batch_size = 1;        // rows one worker takes in one step
  int worker_index = 0;      // this worker's place, in [0, workers)
  int workers = 1;           // workers that share each step's rows
  uint64_t seed = 0;         // the same on every worker

  // INVALID_ARGUMENT, with a sentence for the user, unless a Sampler can be made of these.
  absl::Status Validate() const;
};

// Says which rows of the dataset one worker takes in each step: pure arithmetic, no data.
//
// In an epoch all workers follow the same permutation of [0, dataset_size), drawn from
// (seed, epoch). With B = batch_size and W = workers, step g takes its positions
// [g*B*W, (g+1)*B*W), and the worker of index r takes the r-th block of B among them. Hence W
// workers together see exactly what one worker of batch size B*W sees, in the same order. The
// remainder, less than B*W rows, is dropped; it is another one in each epoch.
//
// The permutation is specified to the bit and will not change, so that a run can be repeated on any
// machine with any standard library: std::mt19937_64 seeded by std::seed_seq{low and high 32 bits
// of seed, low and high 32 bits of epoch}; then Fisher-Yates from the last position to the second,
// each swapped with one drawn from those not after it. A draw below n takes the first output that
// is at least 2^64 mod n, modulo n, which favours none.
//
// Externally synchronized: Batch() keeps the permutation of the latest epoch.
class Sampler {
 public:
  // `options` has passed Validate().
  explicit Sampler(const SamplerOptions& options) : options_(options) {}

  int64_t steps_per_epoch() const;

  // The rows for this worker: batch_size of them, or none unless `step` is in
  // [0, steps_per_epoch()). `epoch` counts from 0.
  std::vector<int64_t> Batch(int64_t epoch, int64_t step);

 private:
  int64_t GlobalBatchSize() const;

  const SamplerOptions options_;
  std::optional<int64_t> epoch_;      // of permutation_; empty before the first Batch()
  std::vector<int64_t> permutation_;  // of [0, dataset_size)
};

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_SAMPLER_H_
