// What virtual workers train: a model with its data.

#ifndef SLUICE_TOOLS_BENCH_STALENESS_WORKLOAD_H_
#define SLUICE_TOOLS_BENCH_STALENESS_WORKLOAD_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "common/tensor/running_means.h"

namespace sluice::bench {

// What a worker pushes.
struct Computed {
  std::vector<float> values;  // a gradient with the statistics; parameters after local steps
  float loss = 0;             // mean over its batches
  uint32_t samples = 0;       // in its batches
  RunningMeans means;         // how much of what was pulled is left in the statistics
};

// Batches are numbered from 0 over all epochs. A batch has the same samples whoever computes it.
// Two workloads that were made alike compute the same bits. Used by one thread.
class Workload {
 public:
  virtual ~Workload() = default;

  virtual const Layout& layout() const = 0;
  virtual const std::vector<float>& first_parameters() const = 0;
  virtual int64_t batches_per_epoch() const = 0;

  // Computes what the worker pushes after `batches`, which are not empty. It begins with
  // `parameters`, which are those that it pulled last. `rate` multiplies the learning rates of
  // local steps.
  virtual Computed Compute(uint32_t worker, absl::Span<const float> parameters,
                           absl::Span<const int64_t> batches, double rate) = 0;

  // The share of the test set that the model gets right.
  virtual double Accuracy(absl::Span<const float> parameters) = 0;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_STALENESS_WORKLOAD_H_
