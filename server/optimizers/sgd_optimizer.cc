// Stochastic gradient descent with momentum, dampening, Nesterov momentum (Sutskever et al. 2013,
// "On the importance of initialization and momentum in deep learning") and weight decay.
//
// The formulas are those of torch::optim::SGD, in float32. With g the gradient:
//   d = g + weight_decay · p
//   b = d at the first step, momentum · b + (1 − dampening) · d later   (only if momentum ≠ 0)
//   d = d + momentum · b if nesterov, else b                            (only if momentum ≠ 0)
//   p ← p − learning_rate · d
//
// Ordered momentum (Shi et al. 2024, "Ordered Momentum for Asynchronous SGD", algorithm 2) replaces
// the last three lines where gradients are stale. In synchronous training with n workers, momentum
// decays once for n gradients. So it does here: every n-th gradient has the decay β = momentum, the
// others have 1. A gradient that is computed before the latest l decays is l late. Its share of the
// momentum has decayed l times, and the parameters get at once what it would have moved them in
// those decays:
//   b ← decay · b + β^l · (1 − dampening) · d
//   p ← p − learning_rate · (decay · b before, if it decays now, else 0
//                            + (1 + β + … + β^l) · (1 − dampening) · d)
// With one worker, decay is β, l is 0, and the formula is that of plain momentum, to the bit,
// except that dampening holds for the first step as well. A group that a program changes to
// Nesterov momentum meanwhile has that.

#include <algorithm>
#include <cmath>

#include "common/tensor/vector_clones.h"
#include "server/optimizers/elementwise_optimizer.h"
#include "server/optimizers/elementwise_rows.h"

namespace sluice {
namespace {

struct Coefficients {
  float divisor;
  float learning_rate;
  float weight_decay;
  float momentum;
  float keep;  // 1 − dampening
  // Of ordered momentum: the factor of b in b, and in the step; that of d in b, and in the step.
  float decay, echo, entering, arriving;
};

template <bool kFirst, bool kNesterov>
SLUICE_LOOP_BODY void StepWithMomentum(const Coefficients c, size_t count,
                                       const float* __restrict sum, const float* __restrict current,
                                       float* __restrict momentum, float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    const float d = sum[i] / c.divisor + c.weight_decay * current[i];
    const float b = kFirst ? d : c.momentum * momentum[i] + c.keep * d;
    momentum[i] = b;
    next[i] = current[i] - c.learning_rate * (kNesterov ? d + c.momentum * b : b);
  }
}

SLUICE_LOOP_BODY void StepOrdered(const Coefficients c, size_t count, const float* __restrict sum,
                                  const float* __restrict current, float* __restrict momentum,
                                  float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    const float d = sum[i] / c.divisor + c.weight_decay * current[i];
    const float b = momentum[i];
    momentum[i] = c.decay * b + c.entering * d;
    next[i] = current[i] - c.learning_rate * (c.echo * b + c.arriving * d);
  }
}

SLUICE_LOOP_BODY void StepWithout(const Coefficients c, size_t count, const float* __restrict sum,
                                  const float* __restrict current, float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    next[i] = current[i] - c.learning_rate * (sum[i] / c.divisor + c.weight_decay * current[i]);
  }
}

using Loop = void (*)(const Coefficients&, const StepArrays&);

SLUICE_VECTOR_CLONES
void Plain(const Coefficients& c, const StepArrays& a) {
  StepWithout(c, a.count, a.sum, a.current, a.next);
}
SLUICE_VECTOR_CLONES
void First(const Coefficients& c, const StepArrays& a) {
  StepWithMomentum<true, false>(c, a.count, a.sum, a.current, a.slots[0], a.next);
}
SLUICE_VECTOR_CLONES
void FirstNesterov(const Coefficients& c, const StepArrays& a) {
  StepWithMomentum<true, true>(c, a.count, a.sum, a.current, a.slots[0], a.next);
}
SLUICE_VECTOR_CLONES
void Later(const Coefficients& c, const StepArrays& a) {
  StepWithMomentum<false, false>(c, a.count, a.sum, a.current, a.slots[0], a.next);
}
SLUICE_VECTOR_CLONES
void LaterNesterov(const Coefficients& c, const StepArrays& a) {
  StepWithMomentum<false, true>(c, a.count, a.sum, a.current, a.slots[0], a.next);
}

SLUICE_VECTOR_CLONES
void Ordered(const Coefficients& c, const StepArrays& a) {
  StepOrdered(c, a.count, a.sum, a.current, a.slots[0], a.next);
}

Loop LoopFor(const SgdOptions& options, const OptimizerStep& step) {
  if (options.momentum == 0) return Plain;
  if (step.ordered.has_value() && !options.nesterov) return Ordered;
  const bool first = step.begins();
  if (first) return options.nesterov ? FirstNesterov : First;
  return options.nesterov ? LaterNesterov : Later;
}

}  // namespace

template <>
class StepRule<SgdOptions> {
 public:
  StepRule(const SgdOptions& o, const OptimizerStep& step, double learning_rate)
      : loop_(LoopFor(o, step)), ordered_(loop_ == Ordered) {
    c_.divisor = step.divisor;
    c_.learning_rate = static_cast<float>(learning_rate);
    c_.weight_decay = static_cast<float>(o.weight_decay);
    c_.momentum = static_cast<float>(o.momentum);
    c_.keep = static_cast<float>(1 - o.dampening);
    const OrderedMomentum ordered = step.ordered.value_or(OrderedMomentum());
    const double late = std::pow(o.momentum, ordered.lateness);
    double moved = 1;
    if (ordered.lateness > 0) {
      moved = o.momentum == 1 ? 1 + ordered.lateness : (1 - late * o.momentum) / (1 - o.momentum);
    }
    c_.decay = ordered.decays ? c_.momentum : 1;
    c_.echo = ordered.decays ? c_.momentum : 0;
    c_.entering = static_cast<float>(late * (1 - o.dampening));
    c_.arriving = static_cast<float>(moved * (1 - o.dampening));
  }

  void Apply(const StepArrays& arrays) const { loop_(c_, arrays); }

  // |d| ≤ |g| + weight_decay · |p|, and so on: the formulas with every term made positive. They
  // count both kinds of momentum's step and a buffer that the first step does not read.
  Magnitudes After(const Magnitudes& before) const {
    Magnitudes after = before;
    const double d = before.gradient + double{c_.weight_decay} * before.parameters;
    double step = d;
    if (c_.momentum != 0 && ordered_) {
      after.slots[0] = c_.decay * before.slots[0] + std::abs(c_.entering) * d;
      step = c_.echo * before.slots[0] + std::max(1.0f, std::abs(c_.arriving)) * d;
    } else if (c_.momentum != 0) {
      const double b = c_.momentum * before.slots[0] + std::max(1.0f, std::abs(c_.keep)) * d;
      after.slots[0] = b;
      step = d + b + c_.momentum * b;
    }
    after.gradient = step;
    after.parameters = before.parameters + c_.learning_rate * step;
    return after;
  }

 private:
  Coefficients c_;
  Loop loop_;
  bool ordered_;
};

template std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<SgdOptions> groups, uint64_t size);
template std::unique_ptr<RowOptimizer> MakeRowOptimizerOf(const SgdOptions& options);

}  // namespace sluice
