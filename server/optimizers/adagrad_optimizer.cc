// Adagrad (Duchi, Hazan, Singer 2011, "Adaptive Subgradient Methods for Online Learning and
// Stochastic Optimization").
//
// The formulas are those of torch::optim::Adagrad, in float32. With g the gradient and t the number
// of the step:
//   g = g + weight_decay · p
//   s ← s + g², where s starts as initial_accumulator_value
//   p ← p − learning_rate / (1 + (t − 1) · lr_decay) · g / (√s + eps)

#include <cmath>

#include "common/tensor/vector_clones.h"
#include "server/optimizers/elementwise_optimizer.h"

namespace sluice {
namespace {

struct Coefficients {
  float divisor;
  float weight_decay;
  float eps;
  float rate;
  float initial;
};

template <bool kFirst>
SLUICE_LOOP_BODY void Step(const Coefficients c, size_t count, const float* __restrict sum,
                           const float* __restrict current, const float* __restrict squares,
                           float* __restrict new_squares, float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    const float g = sum[i] / c.divisor + c.weight_decay * current[i];
    const float s = (kFirst ? c.initial : squares[i]) + g * g;
    new_squares[i] = s;
    next[i] = current[i] - c.rate * g / (std::sqrt(s) + c.eps);
  }
}

SLUICE_VECTOR_CLONES
void First(const Coefficients& c, const StepArrays& a) {
  Step<true>(c, a.count, a.sum, a.current, a.slots[0], a.new_slots[0], a.next);
}
SLUICE_VECTOR_CLONES
void Later(const Coefficients& c, const StepArrays& a) {
  Step<false>(c, a.count, a.sum, a.current, a.slots[0], a.new_slots[0], a.next);
}

}  // namespace

template <>
class StepRule<AdagradOptions> {
 public:
  StepRule(const AdagradOptions& o, const OptimizerStep& step, double learning_rate)
      : loop_(step.number == 1 ? First : Later) {
    const double slower = 1 + static_cast<double>(step.number - 1) * o.lr_decay;
    c_.divisor = step.divisor;
    c_.weight_decay = static_cast<float>(o.weight_decay);
    c_.eps = static_cast<float>(o.eps);
    c_.rate = static_cast<float>(learning_rate / slower);
    c_.initial = static_cast<float>(o.initial_accumulator_value);
  }

  void Apply(const StepArrays& arrays) const { loop_(c_, arrays); }

 private:
  Coefficients c_;
  void (*loop_)(const Coefficients&, const StepArrays&);
};

template std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<AdagradOptions> groups,
                                                    uint64_t size);

}  // namespace sluice
