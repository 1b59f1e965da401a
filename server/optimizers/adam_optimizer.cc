// Adam (Kingma and Ba 2015, "Adam: A Method for Stochastic Optimization") and AdamW (Loshchilov and
// Hutter 2019, "Decoupled Weight Decay Regularization"), both with AMSGrad (Reddi, Kale, Kumar
// 2018, "On the Convergence of Adam and Beyond") as an option.
//
// The formulas are those of torch::optim, in float32. With g the gradient and t the number of the
// step:
//   g = g + weight_decay · p                                           (Adam)
//   p = p − learning_rate · weight_decay · p                           (AdamW)
//   m ← beta1 · m + (1 − beta1) · g
//   v ← beta2 · v + (1 − beta2) · g²
//   p ← p − learning_rate · (m / (1 − beta1^t)) / (√v / √(1 − beta2^t) + eps)
// With amsgrad, the largest v so far takes the place of v in the last line.
//
// Stale gradients act like momentum (Mitliagkas et al. 2016, "Asynchrony begets Momentum"). So the
// rule divided-momentum puts beta1 / n in the place of beta1, where n is about the number of
// workers. While n stays the same, that is Adam with another beta1.

#include <algorithm>
#include <cmath>

#include "common/tensor/vector_clones.h"
#include "server/optimizers/elementwise_optimizer.h"
#include "server/optimizers/elementwise_rows.h"

namespace sluice {
namespace {

// The coefficients of Adam and of AdamW. The weight decay of the other one is turned off (penalty
// 0, kept 1), which changes no bit.
struct Coefficients {
  float divisor;
  float penalty;        // Adam: what weight decay adds to the gradient
  float kept;           // AdamW: what weight decay leaves of a parameter
  float beta1, fresh1;  // 1 − beta1
  float beta2, fresh2;
  float root_scale;  // 1 / √(1 − beta2^t)
  float eps;
  float rate;  // learning_rate / (1 − beta1^t)
};

template <bool kAmsgrad>
SLUICE_LOOP_BODY void Step(const Coefficients c, size_t count, const float* __restrict sum,
                           const float* __restrict current, float* __restrict mean,
                           float* __restrict square, float* __restrict largest,
                           float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    const float g = sum[i] / c.divisor + c.penalty * current[i];
    const float m = c.beta1 * mean[i] + c.fresh1 * g;
    const float v = c.beta2 * square[i] + c.fresh2 * g * g;
    mean[i] = m;
    square[i] = v;
    float by = v;
    if (kAmsgrad) {
      const float before = largest[i];
      by = before > v ? before : v;
      largest[i] = by;
    }
    next[i] = c.kept * current[i] - c.rate * m / (std::sqrt(by) * c.root_scale + c.eps);
  }
}

SLUICE_VECTOR_CLONES
void Plain(const Coefficients& c, const StepArrays& a) {
  Step<false>(c, a.count, a.sum, a.current, a.slots[0], a.slots[1], a.slots[2], a.next);
}
SLUICE_VECTOR_CLONES
void Amsgrad(const Coefficients& c, const StepArrays& a) {
  Step<true>(c, a.count, a.sum, a.current, a.slots[0], a.slots[1], a.slots[2], a.next);
}

class AdamRule {
 public:
  template <typename Options>
  AdamRule(const Options& o, const OptimizerStep& step, double learning_rate)
      : loop_(o.amsgrad ? Amsgrad : Plain) {
    const auto t = static_cast<double>(step.number);
    const double beta1 = o.beta1 / step.momentum_divisor;
    c_.divisor = step.divisor;
    c_.penalty = static_cast<float>(o.weight_decay);
    c_.kept = 1;
    c_.beta1 = static_cast<float>(beta1);
    c_.fresh1 = static_cast<float>(1 - beta1);
    c_.beta2 = static_cast<float>(o.beta2);
    c_.fresh2 = static_cast<float>(1 - o.beta2);
    c_.root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(o.beta2, t)));
    c_.eps = static_cast<float>(o.eps);
    c_.rate = static_cast<float>(learning_rate / (1 - std::pow(beta1, t)));
  }

  void Apply(const StepArrays& arrays) const { loop_(c_, arrays); }

  // The formulas with every term made positive, and √v ≥ 0 left out of the divisor. v stays ≥ 0.
  Magnitudes After(const Magnitudes& before) const {
    Magnitudes after;
    const double g = before.gradient + double{c_.penalty} * before.parameters;
    const double m = c_.beta1 * before.slots[0] + c_.fresh1 * g;
    const double v = c_.beta2 * before.slots[1] + c_.fresh2 * g * g;
    const double rated = std::abs(c_.rate) * m;
    after.gradient = g + rated;
    after.slots = {m, v, std::max(before.slots[2], v)};
    after.parameters = std::abs(c_.kept) * before.parameters + rated / c_.eps;
    return after;
  }

 protected:
  Coefficients c_;

 private:
  void (*loop_)(const Coefficients&, const StepArrays&);
};

}  // namespace

template <>
class StepRule<AdamOptions> : public AdamRule {
 public:
  using AdamRule::AdamRule;
};

template <>
class StepRule<AdamWOptions> : public AdamRule {
 public:
  StepRule(const AdamWOptions& o, const OptimizerStep& step, double learning_rate)
      : AdamRule(o, step, learning_rate) {
    c_.penalty = 0;
    c_.kept = static_cast<float>(1 - learning_rate * o.weight_decay);
  }
};

template std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<AdamOptions> groups, uint64_t size);
template std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<AdamWOptions> groups,
                                                    uint64_t size);
template std::unique_ptr<RowOptimizer> MakeRowOptimizerOf(const AdamOptions& options);
template std::unique_ptr<RowOptimizer> MakeRowOptimizerOf(const AdamWOptions& options);

}  // namespace sluice
