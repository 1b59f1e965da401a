// The options of local steps: periodic and elastic averaging.

#ifndef SLUICE_WORKER_TRAINING_LOCAL_STEPS_H_
#define SLUICE_WORKER_TRAINING_LOCAL_STEPS_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "common/protocol/optimizer_table.h"

namespace sluice {

// A worker takes `every` steps with an optimizer of its own, then pushes its parameters. The server
// replaces its parameters by the mean of the workers'.
//
// The mean moves less than one process would. With outer momentum, the server takes how far the
// mean moved for the gradient of a step of SGD with momentum, and so goes on in its direction (Wang
// et al. 2019, "SlowMo"; with Nesterov momentum Douillard et al. 2023, "DiLoCo").
//
// With both rates below 1 this is elastic averaging (Zhang, Choromanska, LeCun 2015, "Deep Learning
// with Elastic Averaging SGD", equations 5 and 6). Let x be the worker's parameters and c the
// server's latest ones: then x ← x − elasticity · (x − c), and c moves by `moving_rate` towards the
// mean of all x. The paper uses moving_rate = workers · elasticity.
struct LocalSteps {
  uint32_t every = 1;
  double elasticity = 1;   // 0 < rate ≤ 1; 1: the worker takes the server's parameters
  double moving_rate = 1;  // 0 < rate ≤ 1; 1: the mean replaces the server's parameters
  // 0 ≤ momentum < 1. Absent: 0.3 if the workers take several steps and both rates are 1, else 0.
  // tools/bench/figures/local-steps-2026-11-23.md has what that is worth.
  absl::optional<double> outer_momentum = absl::nullopt;
  bool outer_nesterov = false;  // needs outer_momentum above 0
};

// The optimizer of a server whose workers take such local steps.
AveragingOptions AveragingOf(const LocalSteps& local);

}  // namespace sluice

#endif  // SLUICE_WORKER_TRAINING_LOCAL_STEPS_H_
