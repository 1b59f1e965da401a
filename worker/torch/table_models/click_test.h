// How good guesses of clicks are.

#ifndef SLUICE_WORKER_TORCH_TABLE_MODELS_CLICK_TEST_H_
#define SLUICE_WORKER_TORCH_TABLE_MODELS_CLICK_TEST_H_

#include <torch/types.h>

#include "worker/training/evaluation.h"

namespace sluice {

// How often a sample with a click has higher odds than one without. Equal odds are ordered anyhow.
// `odds` and `clicks` have one dimension; a click is a 1, none is a 0.
double AreaUnderCurve(const torch::Tensor& odds, const torch::Tensor& clicks);

// The loss (mean cross entropy in nats) and the area. `odds` are logarithms.
TestResult TestOfClicks(const torch::Tensor& odds, const torch::Tensor& clicks);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TABLE_MODELS_CLICK_TEST_H_
