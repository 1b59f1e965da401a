// How good a model was at several times of a training, measured when the training is over.

#ifndef SLUICE_TOOLS_BENCH_COMPARING_TORCH_CURVE_H_
#define SLUICE_TOOLS_BENCH_COMPARING_TORCH_CURVE_H_

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/protocol_types.h"
#include "worker/data/dataset.h"
#include "worker/training/evaluation.h"

namespace sluice::bench {

// A copy of the parameters is kept at each of these times, so a test costs training nothing but the
// copy. Used by one thread.
class TorchCurve {
 public:
  // Copies are at least `interval` apart.
  explicit TorchCurve(absl::Duration interval) : interval_(interval) {}

  // The parameters of `model` are those of `step`, `elapsed` after the training began.
  void Note(const torch::nn::Module& model, Step step, absl::Duration elapsed);

  struct Point {
    absl::Duration elapsed;
    Step step;
    Evaluation evaluation;
  };

  // Evaluates every copy on `data`. `model` is a name that MakeModel() knows.
  absl::StatusOr<std::vector<Point>> Evaluate(const std::string& model, const Dataset& data) const;

 private:
  struct Copy {
    absl::Duration elapsed;
    Step step;
    std::vector<torch::Tensor> tensors;  // parameters, then buffers
  };

  const absl::Duration interval_;
  std::vector<Copy> copies_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_COMPARING_TORCH_CURVE_H_
