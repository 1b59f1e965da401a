// Batches of made data: what a sample is follows from its number alone, so every process makes the
// same sample, and each epoch has new ones.

#ifndef SLUICE_WORKER_DATA_TABLES_MADE_BATCH_H_
#define SLUICE_WORKER_DATA_TABLES_MADE_BATCH_H_

#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/types/span.h"

namespace sluice {

// The seeds of SampleNumbers. Those from kHiddenSeed on are of what the model is to find.
inline constexpr uint64_t kTrainSeed = 0;
inline constexpr uint64_t kTestSeed = 1;
inline constexpr uint64_t kHiddenSeed = 2;

// The numbers of the samples `rows` of an epoch that has `size` samples.
inline std::vector<int64_t> NumbersOf(absl::Span<const int64_t> rows, int64_t epoch, int64_t size) {
  std::vector<int64_t> numbers;
  numbers.reserve(rows.size());
  for (const int64_t row : rows) numbers.push_back(epoch * size + row);
  return numbers;
}

// The numbers from 0 on, of the test.
inline std::vector<int64_t> FirstNumbers(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_TABLES_MADE_BATCH_H_
