// Periodic and elastic averaging, as a worker takes part in it.

#ifndef SLUICE_WORKER_TRAINING_LOCAL_STEPS_H_
#define SLUICE_WORKER_TRAINING_LOCAL_STEPS_H_

#include <cstdint>

namespace sluice {

// The worker takes `every` steps with an optimizer of its own,
// then pushes its parameters, and the server's are their mean.
//
// With the two rates below 1 this is elastic averaging (Zhang, Choromanska, LeCun 2015, "Deep
// Learning with Elastic Averaging SGD", equations 5 and 6): with x the worker's parameters and c
// the server's that it got last, x ← x − elasticity · (x − c), and the server's c moves by
// `moving_rate` towards the mean of the x. The paper has moving_rate = workers · elasticity.
struct LocalSteps {
  uint32_t every = 1;
  double elasticity = 1;   // 0 < rate ≤ 1; 1: the worker goes on with the server's parameters
  double moving_rate = 1;  // 0 < rate ≤ 1; 1: the mean replaces the server's parameters
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TRAINING_LOCAL_STEPS_H_
