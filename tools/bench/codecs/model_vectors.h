// What workers and servers send each other, taken from training.

#ifndef SLUICE_TOOLS_BENCH_CODECS_MODEL_VECTORS_H_
#define SLUICE_TOOLS_BENCH_CODECS_MODEL_VECTORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice::bench {

// A parameter, or its gradient: `columns` of the matrix that it is, 0 if it has one dimension only.
struct TensorShape {
  uint64_t elements = 0;
  uint64_t columns = 0;
};

// Both vectors hold one tensor after the other.
struct ModelVectors {
  std::vector<TensorShape> tensors;
  std::vector<float> gradient;
  std::vector<float> parameters;
};

struct Training {
  std::string model;  // as MakeModel() knows it
  int64_t steps = 1;
  int64_t batch_size = 1;
};

// Trains with SGD on Fashion-MNIST, with all cores: the gradient of the last step, and the
// parameters after it. The same ones each time, but for rounding. An error names what is missing.
absl::StatusOr<ModelVectors> TrainModel(const Training& training);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CODECS_MODEL_VECTORS_H_
