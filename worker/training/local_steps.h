// The options of local steps: periodic and elastic averaging.

#ifndef SLUICE_WORKER_TRAINING_LOCAL_STEPS_H_
#define SLUICE_WORKER_TRAINING_LOCAL_STEPS_H_

#include <cstdint>

namespace sluice {

// A worker takes `every` steps with an optimizer of its own, then pushes its parameters. The server
// replaces its parameters by the mean of the workers'.
//
// With both rates below 1 this is elastic averaging (Zhang, Choromanska, LeCun 2015, "Deep Learning
// with Elastic Averaging SGD", equations 5 and 6). Let x be the worker's parameters and c the
// server's latest ones: then x ← x − elasticity · (x − c), and c moves by `moving_rate` towards the
// mean of all x. The paper uses moving_rate = workers · elasticity.
struct LocalSteps {
  uint32_t every = 1;
  double elasticity = 1;   // 0 < rate ≤ 1; 1: the worker takes the server's parameters
  double moving_rate = 1;  // 0 < rate ≤ 1; 1: the mean replaces the server's parameters
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TRAINING_LOCAL_STEPS_H_
