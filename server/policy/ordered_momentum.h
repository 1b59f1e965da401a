// How a step uses momentum under the rule Consistency::ordered_momentum (Shi et al. 2024, "Ordered
// Momentum for Asynchronous SGD"). sgd_optimizer.cc has the formula.

#ifndef SLUICE_SERVER_POLICY_ORDERED_MOMENTUM_H_
#define SLUICE_SERVER_POLICY_ORDERED_MOMENTUM_H_

namespace sluice {

struct OrderedMomentum {
  // Whether the momentum decays in this step. It does once for as many gradients as there are
  // workers.
  bool decays = false;
  // How many decays the step's gradients missed: a mean over them, so not always whole.
  double lateness = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_ORDERED_MOMENTUM_H_
