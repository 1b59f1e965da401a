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

  // OK if a Sampler can be made with these options. Otherwise INVALID_ARGUMENT, with a sentence for
  // the user.
  absl::Status Validate() const;
};

// Decides which rows of the dataset a worker takes in each step. Pure arithmetic, no data.
//
// In an epoch all workers use the same permutation of [0, dataset_size), drawn from (seed, epoch).
// Let B = batch_size and W = workers. Step g takes the positions [g*B*W, (g+1)*B*W) of the
// permutation, and the worker with index r takes the r-th block of B of them. So W workers together
// see exactly what one worker of batch size B*W sees, in the same order. The remainder, less than
// B*W rows, is dropped; each epoch drops different rows.
//
// The permutation is specified to the bit and will not change, so that a run can be repeated on any
// machine with any standard library: std::mt19937_64 is seeded by std::seed_seq{low and high 32
// bits of seed, low and high 32 bits of epoch}. Fisher-Yates then goes from the last position to
// the second, and swaps each with one drawn from the positions not after it. A draw below n takes
// the first output that is at least 2^64 mod n, modulo n, so that all values are equally likely.
//
// Externally synchronized: Batch() caches the permutation of the latest epoch.
class Sampler {
 public:
  // `options` has passed Validate().
  explicit Sampler(const SamplerOptions& options) : options_(options) {}

  int64_t steps_per_epoch() const;

  // The batch_size rows of that block of the epoch (batch_deal.h). Blocks of all workers count.
  // None if the epoch has no such block.
  std::vector<int64_t> Block(int64_t epoch, int64_t block);

  // This worker's batch_size rows of a step; none if `step` is outside [0, steps_per_epoch()).
  // `epoch` counts from 0.
  std::vector<int64_t> Batch(int64_t epoch, int64_t step);

 private:
  int64_t GlobalBatchSize() const;

  const SamplerOptions options_;
  std::optional<int64_t> epoch_;      // of permutation_; empty before the first Batch()
  std::vector<int64_t> permutation_;  // of [0, dataset_size)
};

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_SAMPLER_H_
