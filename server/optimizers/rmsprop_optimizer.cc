// RMSprop (Tieleman and Hinton 2012, lecture 6.5 of "Neural Networks for Machine Learning"), also
// centered (Graves 2013, "Generating Sequences With Recurrent Neural Networks") and with momentum.
//
// The formulas are those of torch::optim::RMSprop, in float32. With g the gradient:
//   g = g + weight_decay · p
//   s ← alpha · s + (1 − alpha) · g²
//   a ← alpha · a + (1 − alpha) · g            (only if centered)
//   d = √(s − a²) + eps if centered, else √s + eps
//   b ← momentum · b + g / d,  p ← p − learning_rate · b     (with momentum)
//   p ← p − learning_rate · g / d                            (without)
// Where rounding makes s − a² negative, it counts as 0; torch::optim computes NaN.

#include <cmath>

#include "common/tensor/vector_clones.h"
#include "server/optimizers/elementwise_optimizer.h"
#include "server/optimizers/elementwise_rows.h"

namespace sluice {
namespace {

struct Coefficients {
  float divisor;
  float weight_decay;
  float alpha, fresh;  // 1 − alpha
  float eps;
  float momentum;
  float learning_rate;
};

template <bool kCentered, bool kMomentum>
SLUICE_LOOP_BODY void Step(const Coefficients c, size_t count, const float* __restrict sum,
                           const float* __restrict current, float* __restrict square,
                           float* __restrict mean, float* __restrict buffer,
                           float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    const float g = sum[i] / c.divisor + c.weight_decay * current[i];
    float variance = c.alpha * square[i] + c.fresh * g * g;
    square[i] = variance;
    if (kCentered) {
      const float a = c.alpha * mean[i] + c.fresh * g;
      mean[i] = a;
      variance -= a * a;
      variance = variance > 0 ? variance : 0;
    }
    float step = g / (std::sqrt(variance) + c.eps);
    if (kMomentum) {
      step += c.momentum * buffer[i];
      buffer[i] = step;
    }
    next[i] = current[i] - c.learning_rate * step;
  }
}

using Loop = void (*)(const Coefficients&, const StepArrays&);

SLUICE_VECTOR_CLONES
void Plain(const Coefficients& c, const StepArrays& a) {
  Step<false, false>(c, a.count, a.sum, a.current, a.slots[0], a.slots[2], a.slots[1], a.next);
}
SLUICE_VECTOR_CLONES
void WithMomentum(const Coefficients& c, const StepArrays& a) {
  Step<false, true>(c, a.count, a.sum, a.current, a.slots[0], a.slots[2], a.slots[1], a.next);
}
SLUICE_VECTOR_CLONES
void Centered(const Coefficients& c, const StepArrays& a) {
  Step<true, false>(c, a.count, a.sum, a.current, a.slots[0], a.slots[2], a.slots[1], a.next);
}
SLUICE_VECTOR_CLONES
void CenteredWithMomentum(const Coefficients& c, const StepArrays& a) {
  Step<true, true>(c, a.count, a.sum, a.current, a.slots[0], a.slots[2], a.slots[1], a.next);
}

Loop LoopFor(const RmsPropOptions& options) {
  if (options.momentum > 0) return options.centered ? CenteredWithMomentum : WithMomentum;
  return options.centered ? Centered : Plain;
}

}  // namespace

template <>
class StepRule<RmsPropOptions> {
 public:
  StepRule(const RmsPropOptions& o, const OptimizerStep& step, double learning_rate)
      : loop_(LoopFor(o)) {
    c_.divisor = step.divisor;
    c_.weight_decay = static_cast<float>(o.weight_decay);
    c_.alpha = static_cast<float>(o.alpha);
    c_.fresh = static_cast<float>(1 - o.alpha);
    c_.eps = static_cast<float>(o.eps);
    c_.momentum = static_cast<float>(o.momentum);
    c_.learning_rate = static_cast<float>(learning_rate);
  }

  void Apply(const StepArrays& arrays) const { loop_(c_, arrays); }

  // The formulas with every term made positive, and the root, which is at least 0, left out of d.
  Magnitudes After(const Magnitudes& before) const {
    Magnitudes after;
    const double g = before.gradient + double{c_.weight_decay} * before.parameters;
    const double s = c_.alpha * before.slots[0] + c_.fresh * g * g;
    const double a = c_.alpha * before.slots[2] + c_.fresh * g;
    const double step = g / c_.eps + c_.momentum * before.slots[1];
    after.gradient = g + a * a + step;
    after.slots = {s, step, a};
    after.parameters = before.parameters + c_.learning_rate * step;
    return after;
  }

 private:
  Coefficients c_;
  Loop loop_;
};

template std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<RmsPropOptions> groups,
                                                    uint64_t size);
template std::unique_ptr<RowOptimizer> MakeRowOptimizerOf(const RmsPropOptions& options);

}  // namespace sluice
