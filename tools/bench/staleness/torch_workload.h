// The workloads: models of LibTorch, trained by workers that share a module.

#ifndef SLUICE_TOOLS_BENCH_STALENESS_TORCH_WORKLOAD_H_
#define SLUICE_TOOLS_BENCH_STALENESS_TORCH_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/protocol/optimizer_config.h"
#include "tools/bench/staleness/workload.h"

namespace sluice::bench {

struct TorchWorkloadOptions {
  std::string model = "lenet";  // lenet, mlp or resnet18, on Fashion-MNIST; or transformer
  std::string data_dir;         // of the images; empty: where Debian puts them
  int64_t test_images = 0;      // so many of the test set's images, the first ones; 0: all
  int batch_size = 32;
  uint64_t seed = 1;  // of the first parameters and of the order of the data
  // Local steps: each worker has this optimizer and a module of its own, and pushes parameters.
  // Absent: workers push gradients.
  absl::optional<OptimizerConfig> local;
};

// LibTorch computes with one thread, so that the bits do not depend on how many cores there are.
// INVALID_ARGUMENT names an option that is wrong; other errors are those of LoadDataset().
absl::StatusOr<std::unique_ptr<Workload>> MakeTorchWorkload(const TorchWorkloadOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_STALENESS_TORCH_WORKLOAD_H_
