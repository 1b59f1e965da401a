// The random numbers of one sample of made data. They follow from the sample's number alone, so
// every process makes the same sample.

#ifndef SLUICE_WORKER_DATA_TABLES_SAMPLE_NUMBERS_H_
#define SLUICE_WORKER_DATA_TABLES_SAMPLE_NUMBERS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "common/tensor/table_spec.h"

namespace sluice {

// SplitMix64, as an engine of <random>.
class SampleNumbers {
 public:
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return std::numeric_limits<uint64_t>::max(); }

  // Samples of different seeds have nothing in common.
  SampleNumbers(uint64_t seed, uint64_t sample) : state_(MixId(MixId(seed + 1) ^ sample)) {}

  uint64_t operator()() { return MixId(state_ += 0x9E3779B97F4A7C15); }

  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(*this); }
  float Normal() { return std::normal_distribution<float>()(*this); }

 private:
  uint64_t state_;
};

// That many normally distributed numbers, times `scale`, of the first sample of a seed.
inline std::vector<float> Normals(uint64_t seed, int64_t count, float scale) {
  std::vector<float> normals(static_cast<size_t>(count));
  SampleNumbers numbers(seed, 0);
  for (float& number : normals) number = scale * numbers.Normal();
  return normals;
}

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_TABLES_SAMPLE_NUMBERS_H_
