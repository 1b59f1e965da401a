#include "worker/data/sampler.h"

#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

uint64_t DrawBelow(uint64_t bound, std::mt19937_64& generator) {
  // 2^64 mod bound: below it lie the outputs that would favour the small remainders.
  const uint64_t rejected = (uint64_t{0} - bound) % bound;
  uint64_t output = generator();
  while (output < rejected) output = generator();
  return output % bound;
}

std::mt19937_64 MakeGenerator(uint64_t seed, uint64_t epoch) {
  std::seed_seq words = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                         static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32)};
  return std::mt19937_64(words);
}

std::vector<int64_t> MakePermutation(int64_t size, std::mt19937_64 generator) {
  std::vector<int64_t> permutation(static_cast<size_t>(size));
  std::iota(permutation.begin(), permutation.end(), int64_t{0});
  for (size_t last = permutation.size() - 1; last > 0; --last) {
    std::swap(permutation[last], permutation[DrawBelow(last + 1, generator)]);
  }
  return permutation;
}

}  // namespace

absl::Status SamplerOptions::Validate() const {
  if (batch_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the batch size is ", batch_size, ", expected at least 1"));
  }
  if (workers < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the number of workers is ", workers, ", expected at least 1"));
  }
  if (worker_index < 0 || worker_index >= workers) {
    return absl::InvalidArgumentError(absl::StrCat("the worker's index is ", worker_index,
                                                   ", expected 0 to ", workers - 1, " with ",
                                                   workers, " workers"));
  }
  const int64_t needed = int64_t{batch_size} * workers;
  if (dataset_size < needed) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the dataset has ", dataset_size, " rows, expected at least ", needed, ": one batch of ",
        batch_size, " for each of ", workers, " workers; lower the batch size or use fewer"));
  }
  return absl::OkStatus();
}

int64_t Sampler::GlobalBatchSize() const { return int64_t{options_.batch_size} * options_.workers; }

int64_t Sampler::steps_per_epoch() const { return options_.dataset_size / GlobalBatchSize(); }

std::vector<int64_t> Sampler::Batch(int64_t epoch, int64_t step) {
  if (step < 0 || step >= steps_per_epoch()) return {};
  return Block(epoch, step * options_.workers + options_.worker_index);
}

std::vector<int64_t> Sampler::Block(int64_t epoch, int64_t block) {
  if (block < 0 || block >= options_.dataset_size / options_.batch_size) return {};
  if (epoch_ != epoch) {
    permutation_ = MakePermutation(options_.dataset_size,
                                   MakeGenerator(options_.seed, static_cast<uint64_t>(epoch)));
    epoch_ = epoch;
  }
  const auto begin = permutation_.begin() + block * options_.batch_size;
  return std::vector<int64_t>(begin, begin + options_.batch_size);
}

}  // namespace sluice
