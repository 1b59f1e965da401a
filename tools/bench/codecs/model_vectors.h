// Real gradients and parameters, taken from a training.

#ifndef SLUICE_TOOLS_BENCH_CODECS_MODEL_VECTORS_H_
#define SLUICE_TOOLS_BENCH_CODECS_MODEL_VECTORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice::bench {

// The shape of a parameter and of its gradient. `columns` is 0 if it has only one dimension.
struct TensorShape {
  uint64_t elements = 0;
  uint64_t columns = 0;
};

// Both vectors hold the tensors one after the other.
struct ModelVectors {
  std::vector<TensorShape> tensors;
  std::vector<float> gradient;
  std::vector<float> parameters;
};

struct Training {
  std::string model;  // a name that MakeModel() knows
  int64_t steps = 1;
  int64_t batch_size = 1;
};

// Trains with SGD on Fashion-MNIST on all cores. Returns the gradient of the last step and the
// parameters after it, which are the same each time except for rounding. An error names what is
// missing.
absl::StatusOr<ModelVectors> TrainModel(const Training& training);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CODECS_MODEL_VECTORS_H_
